#include "server/json/json_parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::json_parse_test {
namespace {

using testing::HasSubstr;

std::string Error(const std::string& body) {
  const auto json = ParseObject(body);
  EXPECT_TRUE(absl::IsInvalidArgument(json.status())) << body.substr(0, 100);
  return Message(json.status());
}

TEST(ParseObjectTest, BuildsWhatIsThere) {
  const std::string body = R"({"a":[1,-2,2.5,"x",true,null,{"b":{}},[]],"c":18446744073709551615})";
  EXPECT_EQ(ParseObject(body)->dump(), body);
  EXPECT_EQ(ParseObject(" {} \n")->dump(), "{}");
}

TEST(FindLongestStringTest, EscapedQuotesAreNoEnd) {
  const auto longest = [](std::string_view text) { return FindLongestString(text, "a").value; };
  EXPECT_EQ(longest(""), "");
  EXPECT_EQ(longest("[1, 2]"), "");
  EXPECT_EQ(longest(R"({"a": "bcd", "e": ""})"), "bcd");
  EXPECT_EQ(longest(R"({"ab\"c": "\\", "d": 1})"), R"(ab\"c)");
  EXPECT_EQ(longest(R"(["\\", "abc"])"), "abc");
  // What is not valid has none that is longer than what is there.
  EXPECT_EQ(longest(R"(["abc)"), "abc");
  EXPECT_EQ(longest("\"\\"), "\\");
  EXPECT_EQ(longest("\""), "");
}

TEST(FindLongestStringTest, KnowsItsMember) {
  const auto is_member = [](std::string_view text) {
    return FindLongestString(text, "state").is_member;
  };
  EXPECT_TRUE(is_member(R"({"state":"abcdefgh"})"));
  EXPECT_TRUE(is_member("{\"x\": \"y\", \"state\" \n:\t\"abcdefgh\""));
  for (const char* text : {R"({"prompt":"abcdefgh"})", R"({"state":["abcdefgh"]})", R"("abcdefgh")",
                           R"(:"abcdefgh")", R"(":"abcdefgh")", R"(state":"abcdefgh")",
                           R"("estate":"abcdefgh")", R"({"state","abcdefgh"})", ""}) {
    EXPECT_FALSE(is_member(text)) << text;
  }
}

TEST(ParseObjectTest, NestingIsBounded) {
  const auto nested = [](int depth) {
    return R"({"x": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(ParseObject(nested(63)).ok());
  for (const int depth : {64, 100, 10000, 1000000}) {
    EXPECT_THAT(Error(nested(depth)), HasSubstr("64 levels"));
  }
  EXPECT_THAT(Error(std::string(1000000, '[')), HasSubstr("64 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  EXPECT_THAT(Error(objects), HasSubstr("64 levels"));
  EXPECT_TRUE(ParseObject(R"({"x": ")" + std::string(1000, '[') + R"(\"{"})").ok());
}

TEST(ParseObjectTest, AMemberThatIsThereTwiceIsNamed) {
  for (const char* body : {R"({"a": 1, "b": 2, "a": 1})", R"({"x": [{"a": 1, "a": null}]})",
                           R"({"\u0061": 1, "a": 1})"}) {
    EXPECT_EQ(Field(ParseObject(body).status()), "a") << body;
  }
  EXPECT_TRUE(ParseObject(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})").ok());
}

// Each of these takes many times its bytes.
TEST(ParseObjectTest, WhatTakesMemoryIsBounded) {
  for (const char* part : {R"("")", "[]", "{}"}) {
    std::string list = part;
    for (int i = 1; i < 70000; ++i) list += std::string(",") + part;
    EXPECT_THAT(Error(R"({"x": [)" + list + "]}"), HasSubstr("65536")) << part;
  }
  std::string members = R"("a": 1)";
  for (int i = 0; i < 1000000; ++i) members += ",\"" + std::to_string(i) + "\":1";
  EXPECT_THAT(Error("{" + members + "}"), HasSubstr("65536"));
  std::string ids = "1";
  for (int i = 0; i < 200000; ++i) ids += ",1";
  EXPECT_EQ((*ParseObject(R"({"x": [)" + ids + "]}"))["x"].size(), 200001u);
}

TEST(ParseObjectTest, WhatIsNotAnObjectIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("5"),
        std::string("{} x"), std::string("{\"p\": \"\x01\"}"), std::string(R"({"p": 01})"),
        std::string(R"({"p": NaN})"), std::string(R"({"p": Infinity})"),
        std::string(R"({"p": -inf})")}) {
    Error(body);
  }
}

TEST(ParseObjectTest, ErrorsSayWhatIsWrong) {
  for (const char* half : {R"(\ud800)", R"(\udc00)", R"(\ud800\ud800)", R"(\ud83dx)"}) {
    EXPECT_THAT(Error(R"({"p": ")" + std::string(half) + "\"}"), HasSubstr("surrogate")) << half;
  }
  for (const char* bytes : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_THAT(Error("{\"p\": \"" + std::string(bytes) + "\"}"), HasSubstr("UTF-8"));
  }
  for (const char* number : {"1e400", "-1e400", "1e999999999"}) {
    EXPECT_THAT(Error(R"({"p": )" + std::string(number) + "}"), HasSubstr("out of range"));
  }
  EXPECT_THAT(Error(R"({"prompt": x})"), HasSubstr("byte 12"));
}

// The library repeats in its errors what it has read.
TEST(ParseObjectTest, ErrorsAreShort) {
  const std::string lengthy(1 << 20, 'a');
  EXPECT_LT(Error("{\"p\": \"" + lengthy + "\xff\"}").size(), 200u);
  EXPECT_LT(Error("{\"" + lengthy + "\": 1, \"" + lengthy + "\": 1}").size(), 200u);
}

}  // namespace
}  // namespace hippodrome::json_parse_test
