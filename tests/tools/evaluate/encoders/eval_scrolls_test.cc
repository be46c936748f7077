#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_scrolls_test {
namespace {

using testing::HasSubstr;

class EvalScrollsTest : public EvalFixture {
 protected:
  std::string Write(const std::vector<nlohmann::json>& lines) {
    std::string text;
    for (const nlohmann::json& line : lines) text += line.dump() + "\n";
    return directory_.Write("validation.jsonl", text);
  }
};

nlohmann::json Contract(const std::string& output) {
  return {
      {"id", "1"}, {"pid", "1_0"}, {"input", "The book.\n\nIs red.\n\nAre."}, {"output", output}};
}

TEST_F(EvalScrollsTest, ContractsAreClassified) {
  WriteClassifier({"LABEL_0", "LABEL_1", "LABEL_2"}, 1);
  const std::string data = Write({Contract("Entailment"), Contract("Contradiction"),
                                  Contract("Entailment"), Contract("Not mentioned")});
  ASSERT_EQ(Run(EvalContractNli, {"contract_nli", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["exact_match"], 50);
  EXPECT_EQ(Result()["examples"], 4);
  EXPECT_EQ(Result()["truncated"], 0);
  EXPECT_TRUE(Result()["intervals"].contains("exact_match"));
  WriteClassifier({"not mentioned", "contradiction", "entailment"}, 0);
  ASSERT_EQ(Run(EvalContractNli, {"contract_nli", "--data", data, "--pad-to", "9"}), 0) << error_;
  EXPECT_EQ(Result()["exact_match"], 25);
  EXPECT_EQ(Result()["truncated"], 4);  // 3 + 3 + 2 tokens and three added ones
}

TEST_F(EvalScrollsTest, ContractErrorsNameWhatIsWrong) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  EXPECT_EQ(Run(EvalContractNli, {"contract_nli", "--data", Write({Contract("Maybe")})}), 1);
  EXPECT_THAT(error_, HasSubstr("validation.jsonl: line 1: the label is 'Maybe'"));
  EXPECT_EQ(Run(EvalContractNli, {"contract_nli", "--data", Write({Contract("Entailment")})}), 1);
  EXPECT_THAT(error_, HasSubstr("the model has 2 label(s), but contract_nli has 3"));
}

nlohmann::json Question(const std::vector<std::string>& options, const std::string& output) {
  const std::string input = "Where?\n\n (A) " + options[0] + "\n (B) " + options[1] + "\n (C) " +
                            options[2] + "\n (D) " + options[3] + "\n\nThe book is.\n\nRed.";
  return {{"id", "1"}, {"pid", "1_0"}, {"input", input}, {"output", output}, {"is_hard", true}};
}

const std::vector<std::string> kOptions = {"the", "book", "are", "red"};
const std::vector<std::string> kOtherOrder = {"red", "are", "the", "book"};

// Whatever the model prefers, it must prefer it in any order, and of four answers one is right.
TEST_F(EvalScrollsTest, AChoiceDependsOnTheOptionAlone) {
  WriteModel(EncoderHead::kMultipleChoice, {"LABEL_0", "LABEL_1"}, [](Tensors&) {});
  double sum = 0;
  for (const std::string& gold : kOptions) {
    const std::string data = Write({Question(kOptions, gold), Question(kOtherOrder, gold)});
    ASSERT_EQ(Run(EvalQuality, {"quality", "--data", data}), 0) << error_;
    EXPECT_NE(Result()["exact_match"], 50) << gold;
    EXPECT_EQ(Result()["hard"]["exact_match"], Result()["exact_match"]);
    sum += Result()["exact_match"].get<double>();
  }
  EXPECT_EQ(sum, 100);
}

TEST_F(EvalScrollsTest, AClassifierChoosesToo) {
  WriteClassifier({"wrong", "right"}, 1);
  const std::string data = Write({Question(kOptions, "the"), Question(kOptions, "red")});
  ASSERT_EQ(Run(EvalQuality, {"quality", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["exact_match"], 50);  // the first of equal ones
  EXPECT_EQ(Result()["examples"], 2);
  WriteClassifier({"a", "b", "c"}, 1);
  EXPECT_EQ(Run(EvalQuality, {"quality", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("the model has 3 label(s), expected 1 or 2, or a multiple"));
  WriteModel(EncoderHead::kMaskedLm, {}, [](Tensors&) {});
  EXPECT_EQ(Run(EvalQuality, {"quality", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("holds a BiGSForMaskedLM, expected a BiGSForMultipleChoice or "
                                "BiGSForSequenceClassification"));
}

}  // namespace
}  // namespace hippodrome::eval_scrolls_test
