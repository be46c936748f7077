#include "server/http/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hippodrome::multipart_test {
namespace {

using testing::HasSubstr;

constexpr char kType[] = "multipart/form-data; boundary=B";
constexpr char kName[] = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";

std::string Form(const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string form;
  for (const auto& [head, content] : parts) {
    form += "--B\r\n";
    form += head;
    form += content;
    form += "\r\n";
  }
  return form + "--B--\r\n";
}

std::string Refusal(const std::string& body, const std::string& type = kType) {
  const auto parts = ParseMultipart(type, body);
  return parts.ok() ? "taken" : parts.status().ToString();
}

TEST(MultipartTest, GivesThePartsOfAForm) {
  const std::string content("\0\r\n--Ax\r\n-- \xff\r", 15);
  const std::string form =
      Form({{kName, "batch"},
            {"content-type: text/plain\r\ncontent-disposition: Form-Data; filename=\"x \\\"y\\\"; "
             "z\\w\"; name=file\r\n\r\n",
             content},
            {"Content-Disposition: form-data; name=\"\"\r\n\r\n", ""}});
  const auto parts = *ParseMultipart(kType, form);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "a");
  EXPECT_EQ(parts[0].content, "batch");
  EXPECT_FALSE(parts[0].file_name);
  EXPECT_EQ(parts[1].name, "file");
  EXPECT_EQ(parts[1].file_name, "x \"y\"; z\\w");
  EXPECT_EQ(parts[1].content, content);
  EXPECT_EQ(parts[2].name, "");
  EXPECT_EQ(parts[2].content, "");
  EXPECT_TRUE(ParseMultipart(kType, "--B--")->empty());
}

TEST(MultipartTest, BoundariesMayBeQuoted) {
  const std::string form = "--a b:c\r\n" + std::string(kName) + "x\r\n--a b:c--\r\n";
  const auto parts =
      ParseMultipart(R"(Multipart/Form-Data ; charset=utf-8;boundary="a b:c")", form);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->front().content, "x");
}

TEST(MultipartTest, OtherTypesAreRefused) {
  for (const std::string type :
       {"", "application/json", "multipart/form-data", "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"B", "multipart/form-data; boundary=B; boundary=C",
        "multipart/mixed; boundary=B", "multipart/form-data; boundary=\"B \"",
        "multipart/form-data, boundary=B", "multipart/form-data; boundary=\"B\xc3\""}) {
    EXPECT_THAT(Refusal("--B--", type), HasSubstr("INVALID_ARGUMENT")) << type;
  }
  EXPECT_THAT(Refusal("--B--", "multipart/form-data; boundary=" + std::string(71, 'B')),
              HasSubstr("1 to 70"));
}

TEST(MultipartTest, WhatCouldBeReadInTwoWaysIsRefused) {
  const std::string good = Form({{kName, "x"}});
  ASSERT_EQ(Refusal(good), "taken");
  for (size_t size = 0; size < good.size() - 2; ++size) {
    EXPECT_NE(Refusal(good.substr(0, size)), "taken") << size;
  }
  const std::string named = "Content-Disposition: form-data; name=a";
  for (const std::string& body :
       {"preamble\r\n" + good, "\r\n" + good, good + "epilogue", good + "\r\n", std::string("--B"),
        Form({{named + "\r\n" + named + "\r\n\r\n", "x"}}), Form({{"\r\n", "x"}}),
        Form({{"Content-Type: text/plain\r\n\r\n", "x"}}), Form({{named + "; name=b\r\n\r\n", ""}}),
        Form({{named + "\n\r\n", "x"}}), Form({{named + "\r\n folded\r\n\r\n", "x"}}),
        Form({{named + "\r\nContent-Transfer-Encoding: base64\r\n\r\n", "eA=="}}),
        Form({{"Content-Disposition: attachment; name=a\r\n\r\n", "x"}}),
        Form({{"Content-Disposition: form-data; filename=a\r\n\r\n", "x"}}),
        Form({{named + "; filename=\"a\r\n\r\n", "x"}}), Form({{named, ""}}),
        Form({{kName, "x\r\n--Bx"}}), std::string("--B \r\n") + kName + "x\r\n--B--"}) {
    EXPECT_THAT(Refusal(body), HasSubstr("INVALID_ARGUMENT")) << body;
  }
}

TEST(MultipartTest, PartsAndHeadsAreBounded) {
  EXPECT_EQ(Refusal(Form({16, {kName, "x"}})), "taken");
  EXPECT_THAT(Refusal(Form({17, {kName, "x"}})), HasSubstr("more than 16 parts"));
  EXPECT_THAT(Refusal(Form({{"X: " + std::string(9000, 'x') + "\r\n" + kName, "x"}})),
              HasSubstr("8 KiB"));
}

}  // namespace
}  // namespace hippodrome::multipart_test
