#include "tools/evaluate/encoders/eval_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::eval_syntax_test {
namespace {

using testing::HasSubstr;

TEST(SyntaxPairsTest, MasksTheWordThatDiffers) {
  const auto read = ReadSyntaxPairs("prep_inanim\tsing\tthe book  is red\tthe book are red\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->pairs.size(), 1U);
  const SyntaxPair& pair = read->pairs[0];
  EXPECT_EQ(pair.family, "prep");
  EXPECT_EQ(pair.condition, "prep_inanim/sing");
  EXPECT_EQ(pair.masked, "the book [MASK] red .");
  EXPECT_EQ(pair.good, "is");
  EXPECT_EQ(pair.bad, "are");
}

TEST(SyntaxPairsTest, CountsWhatIsNoMinimalPair) {
  const auto read = ReadSyntaxPairs(
      "a\tb\tx y\tx z\n"
      "a\tb\tx y\tx y\n"
      "a\tb\tx y\tz z\n"
      "a\tb\tx y\tx y z\n"
      "a\tb\tx y\tx z\tx w\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pairs.size(), 1U);
  EXPECT_EQ(read->skipped, 4);
}

TEST(SyntaxPairsTest, FamiliesJoinAnimateAndInanimate) {
  const auto read = ReadSyntaxPairs("prep_anim\tc\tx\ty\nvp_coord\tc\tx\ty\n");
  EXPECT_EQ(read->pairs[0].family, "prep");
  EXPECT_EQ(read->pairs[1].family, "vp_coord");
}

TEST(SyntaxPairsTest, NamesALineThatIsTooShort) {
  EXPECT_THAT(Message(ReadSyntaxPairs("a\tb\tx\ty\na\tb\tx\n").status()),
              HasSubstr("line 2 has 3 field(s), expected 4"));
  EXPECT_THAT(Message(ReadSyntaxPairs("").status()), HasSubstr("no pairs"));
}

}  // namespace
}  // namespace hippodrome::eval_syntax_test
