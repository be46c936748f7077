#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_squad_test {
namespace {

using testing::HasSubstr;
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
  EXPECT_EQ(Result()["intervals"]["exact_match"]["high"], 100);
  // 9 tokens leave the first question room for 2 of the context's 5, in steps of 1; the second for
  // all.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "9"}), 0) << error_;
  EXPECT_EQ(Result()["windows"], 5);
  // Of 7 tokens the first question leaves none.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "7"}), 0) << error_;
  EXPECT_EQ(Result()["too_long"], 1);
  EXPECT_EQ(Result()["exact_match"], 0);
}

// No answer is as likely as any span, which is not enough; a bias for it would be.
TEST_F(EvalSquadTest, WritesPredictions) {
  WriteModel(EncoderHead::kQuestionAnswering, {"LABEL_0", "LABEL_1"}, [](Tensors& tensors) {
    for (float& weight : tensors.at("qa_outputs.weight")) weight = 0;
  });
  const std::string data = directory_.Write("squad.json", R"({"data": [{"paragraphs": [
      {"context": "Red is the book.", "qas": [
        {"id": "z", "question": "Where is the book", "answers": [{"text": "red"}]},
        {"id": "a", "question": "Where", "answers": [], "is_impossible": true}]}]}]})");
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--predictions", directory_.File("p.json"),
                            "--na-probs", directory_.File("n.json")}),
            0)
      << error_;
  EXPECT_EQ(FileContent(directory_.File("p.json")), "{\"z\":\"Red\",\"a\":\"Red\"}\n");
  EXPECT_EQ(FileContent(directory_.File("n.json")), "{\"z\":0.0,\"a\":0.0}\n");
  EXPECT_EQ(Result()["with_answer"]["exact_match"], 100);
  EXPECT_EQ(Result()["without_answer"]["exact_match"], 0);
  EXPECT_EQ(Result()["best_exact"], 100);
}

TEST_F(EvalSquadTest, PredictionsNeedIds) {
  const std::string data = directory_.Write("squad.json", R"({"data": [{"paragraphs": [
      {"context": "Red.", "qas": [{"question": "Where?", "answers": [{"text": "red"}]}]}]}]})");
  EXPECT_EQ(Run(EvalSquad, {"squad", "--data", data, "--predictions", directory_.File("p.json")}),
            1);
  EXPECT_THAT(error_, HasSubstr("squad.json: the question 'Where?' has no id"));
  EXPECT_EQ(Run(EvalSquad, {"squad", "--data", data, "--na-probs", directory_.File("n.json")}), 2);
  EXPECT_THAT(error_, HasSubstr("--na-probs are of SQuAD 2"));
}

}  // namespace
}  // namespace hippodrome::eval_squad_test
