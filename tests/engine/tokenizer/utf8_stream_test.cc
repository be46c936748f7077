#include "engine/tokenizer/utf8_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::utf8_stream_test {
namespace {

struct Case {
  std::string bytes;
  std::string text;
};

// One U+FFFD per maximal ill-formed part (The Unicode Standard, section 3.9).
const std::vector<Case> kCases = {
    {"", ""},
    {"plain", "plain"},
    {"\u00e9\u20ac\U0001f40e", "\u00e9\u20ac\U0001f40e"},
    {"\xf4\x8f\xbf\xbf\xee\x80\x80\xed\x9f\xbf", "\U0010ffff\ue000\xed\x9f\xbf"},
    {"a\xff"
     "b",
     "a\ufffd"
     "b"},
    {"\x80\xbf", "\ufffd\ufffd"},
    {"\xc0\xaf\xc1\x80", "\ufffd\ufffd\ufffd\ufffd"},
    {"\xe0\x80\x80", "\ufffd\ufffd\ufffd"},
    {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
    {"\xf0\x80\x80\x41", "\ufffd\ufffd\ufffd\x41"},
    {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
    {"\xf5\x80", "\ufffd\ufffd"},
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "\ufffd\ufffd\ufffd\ufffd\x41"},
    {"\xe2\x82"
     "a",
     "\ufffd"
     "a"},
    {"\xc3\xc3\xa9", "\ufffd\u00e9"},
    {"end \xe2\x82", "end \ufffd"},
    {"end \xf0\x9f\x90", "end \ufffd"},
    {"end \xc3", "end \ufffd"},
    {std::string("nul\0", 4), std::string("nul\0", 4)},
};

TEST(Utf8Stream, GivesTheSameTextForAllCutsInThree) {
  for (const Case& c : kCases) {
    for (size_t first = 0; first <= c.bytes.size(); ++first) {
      for (size_t second = first; second <= c.bytes.size(); ++second) {
        Utf8Stream stream;
        std::string text = stream.Append(c.bytes.substr(0, first));
        text += stream.Append(c.bytes.substr(first, second - first));
        text += stream.Append(c.bytes.substr(second));
        text += stream.Finish();
        EXPECT_EQ(text, c.text) << first << " " << second;
      }
    }
  }
}

TEST(Utf8Stream, GivesTheSameTextByteByByte) {
  for (const Case& c : kCases) {
    Utf8Stream stream;
    std::string text;
    for (const char byte : c.bytes) text += stream.Append({&byte, 1});
    EXPECT_EQ(text + stream.Finish(), c.text);
  }
}

TEST(Utf8Stream, GivesEverythingThatIsCertain) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("a\xe2"), "a");
  EXPECT_EQ(stream.Append("\x82"), "");
  EXPECT_EQ(stream.Append("\xac"
                          "b\xf0"),
            "\u20ac"
            "b");
  EXPECT_EQ(stream.Append("\x28"), "\ufffd(");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, StartsAnewAfterFinish) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("\xe2\x82"), "");
  EXPECT_EQ(stream.Finish(), "\ufffd");
  EXPECT_EQ(stream.Append("\xac"), "\ufffd");
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace hippodrome::utf8_stream_test
