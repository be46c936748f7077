#include "engine/tokenizer/code_points.h"

#include <gtest/gtest.h>

namespace hippodrome::code_points_test {
namespace {

TEST(CodePointsTest, CutsBetweenCharactersOfAnyLength) {
  const std::string_view text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8Ez";  // a é € 🐎 z
  EXPECT_EQ(SliceCodePoints(text, 0, 5), text);
  EXPECT_EQ(SliceCodePoints(text, 1, 2), "\xC3\xA9");
  EXPECT_EQ(SliceCodePoints(text, 2, 4), "\xE2\x82\xAC\xF0\x9F\x90\x8E");
  EXPECT_EQ(SliceCodePoints(text, 4, 5), "z");
}

TEST(CodePointsTest, EndsWithTheText) {
  EXPECT_EQ(SliceCodePoints("abc", 1, 100), "bc");
  EXPECT_EQ(SliceCodePoints("abc", 7, 9), "");
  EXPECT_EQ(SliceCodePoints("abc", 2, 2), "");
  EXPECT_EQ(SliceCodePoints("", 0, 1), "");
}

TEST(CodePointsTest, CountsEachMaximalPartOfABrokenCharacterAsOne) {
  const std::string_view text = "\xFFx\xE2\x82y\xE2\x82";
  EXPECT_EQ(SliceCodePoints(text, 1, 2), "x");
  EXPECT_EQ(SliceCodePoints(text, 2, 3), "\xE2\x82");
  EXPECT_EQ(SliceCodePoints(text, 3, 4), "y");
  EXPECT_EQ(SliceCodePoints(text, 4, 9), "\xE2\x82");
}

}  // namespace
}  // namespace hippodrome::code_points_test
