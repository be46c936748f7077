#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_syntax_test {
namespace {

using testing::HasSubstr;

class EvalSyntaxTest : public EvalFixture {
 protected:
  // "is" is token 7, "are" 8: every [MASK] is rather an "are".
  void WriteMaskedLm() {
    WriteModel(EncoderHead::kMaskedLm, {}, [](Tensors& tensors) {
      std::vector<float>& bias = tensors.at("cls.predictions.bias");
      for (size_t id = 0; id < bias.size(); ++id) bias[id] = 1000.0F * static_cast<float>(id);
    });
  }
};

TEST_F(EvalSyntaxTest, ComparesTheLogitsOfTheTwoWords) {
  WriteMaskedLm();
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
  EXPECT_EQ(Result()["families"]["prep"]["intervals"]["accuracy"]["high"], 1);
  EXPECT_THAT(error_, HasSubstr("\nSubject-verb agreement\n"));
  EXPECT_THAT(error_, HasSubstr("\n  Across a prepositional phrase        3      0.667 (0.000"));
  EXPECT_THAT(error_, HasSubstr("\n  Short VP coordination\n"));
}

TEST_F(EvalSyntaxTest, CountsByAttractors) {
  WriteMaskedLm();
  const std::string data =
      directory_.Write("agr.tsv",
                       "orig_sentence\tverb_pos\tverb_index\tn_intervening\tn_diff_intervening\n"
                       "the book the red is .\tVBZ\t5\t1\t1\n"
                       "the red the book are .\tVBP\t5\t1\t1\n"
                       "the red the the book are .\tVBP\t6\t2\t2\n");
  ASSERT_EQ(Run(EvalSyntax, {"syntax", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["attractors"]["1"]["accuracy"], 0.5);
  EXPECT_EQ(Result()["attractors"]["2"]["pairs"], 1);
  EXPECT_FALSE(Result().contains("families"));
  EXPECT_THAT(error_, HasSubstr("\n1 attractor   2      0.500 (0.000 to 1.000)"));
}

TEST_F(EvalSyntaxTest, TakesPlainPairs) {
  WriteMaskedLm();
  const std::string data = directory_.Write("pairs.tsv", "The book is.\tThe book are.\n");
  ASSERT_EQ(Run(EvalSyntax, {"syntax", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["accuracy"], 0);
  EXPECT_FALSE(Result().contains("attractors"));
}

}  // namespace
}  // namespace hippodrome::eval_syntax_test
