#include "tools/evaluate/encoders/eval_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_syntax_test {
namespace {

using testing::HasSubstr;
using EvalSyntaxTest = EvalFixture;

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

TEST_F(EvalSyntaxTest, ComparesTheLogitsOfTheTwoWords) {
  WriteModel(EncoderHead::kMaskedLm, {}, [](Tensors& tensors) {
    // "is" is 7, "are" 8: every [MASK] is rather an "are".
    std::vector<float>& bias = tensors.at("cls.predictions.bias");
    for (size_t id = 0; id < bias.size(); ++id) bias[id] = 1000.0F * static_cast<float>(id);
  });
  const std::string data = directory_.Write("pairs.tsv",
                                            "prep_anim\tsing\tthe book is\tthe book are\n"
                                            "prep_anim\tplur\tthe book are\tthe book is\n"
                                            "prep_inanim\tplur\tthe book are\tthe book is\n"
                                            "prep_inanim\tplur\tthe book are\tthe book am\n"
                                            "vp\tplur\tthe book are\tthe red is\n");
  ASSERT_EQ(Run(EvalSyntax, {"syntax", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["pairs"], 3);
  EXPECT_EQ(Result()["skipped_pairs"], 1);  // "am" is no token
  EXPECT_EQ(Result()["skipped_rows"], 1);   // two words differ
  EXPECT_NEAR(Result()["families"]["prep"]["accuracy"], 2.0 / 3, 1e-12);
  EXPECT_EQ(Result()["conditions"]["prep_anim/sing"]["accuracy"], 0);
}

}  // namespace
}  // namespace hippodrome::eval_syntax_test
