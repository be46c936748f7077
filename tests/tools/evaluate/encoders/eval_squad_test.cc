#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_squad_test {
namespace {

using EvalSquadTest = EvalFixture;

// Equal logits everywhere: the best span is the first token of the context.
TEST_F(EvalSquadTest, AnswersWithPartsOfTheContext) {
  WriteModel(EncoderHead::kQuestionAnswering, {"LABEL_0", "LABEL_1"}, [](Tensors& tensors) {
    for (float& weight : tensors.at("qa_outputs.weight")) weight = 0;
  });
  const std::string data = directory_.Write("squad.json", R"({"data": [{"paragraphs": [
      {"context": "Red is the book.", "qas": [
        {"question": "Where is the book", "answers": [{"text": "red"}]},
        {"question": "Where", "answers": [{"text": "the red book"}]}]}]}]})");
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["questions"], 2);
  EXPECT_EQ(Result()["windows"], 2);
  EXPECT_EQ(Result()["exact_match"], 50);
  EXPECT_NEAR(Result()["f1"], 100 * (1 + 2.0 / 3) / 2, 1e-9);
  // 9 tokens leave the first question room for 2 of the context's 5, in steps of 1; the second for
  // all.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "9"}), 0) << error_;
  EXPECT_EQ(Result()["windows"], 5);
  // Of 7 tokens the first question leaves none.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "7"}), 0) << error_;
  EXPECT_EQ(Result()["too_long"], 1);
  EXPECT_EQ(Result()["exact_match"], 0);
}

}  // namespace
}  // namespace hippodrome::eval_squad_test
