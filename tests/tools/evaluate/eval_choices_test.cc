#include "tools/evaluate/eval_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"
#include "tools/evaluate/eval_perplexity.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome::eval_choices_test {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "deploy/models/h3-demo";
constexpr int64_t kEndOfText = 4095;

class JoinTest : public testing::Test {
 protected:
  Continuation Cut(const std::string& context, const std::string& continuation) const {
    const auto joined = Join(context, continuation, tokenizer_.get(), kEndOfText);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(Continuation());
  }
  int64_t Count(const std::string& text) const { return std::ssize(tokenizer_->Encode(text)); }

  const std::unique_ptr<BpeTokenizer> tokenizer_ = BpeTokenizer::Read(kModel).value();
};

TEST_F(JoinTest, TextsAreOneText) {
  const Continuation joined = Cut("The king", " of Babylon");
  EXPECT_EQ(joined.ids, tokenizer_->Encode("The king of Babylon"));
  EXPECT_EQ(joined.begin, Count("The king"));
}

TEST_F(JoinTest, WhiteSpaceBetweenThemGoesWithTheContinuation) {
  for (const std::string space : {" ", "\n", " \t\r\n", "\u3000", "\u00a0 "}) {
    const Continuation joined = Cut("The king" + space, "of Babylon");
    EXPECT_EQ(joined.ids, tokenizer_->Encode("The king" + space + "of Babylon"));
    EXPECT_EQ(joined.begin, Count("The king"));
  }
}

TEST_F(JoinTest, AnEmptyContextIsTheEndOfTextToken) {
  for (const std::string context : {"", " "}) {
    const Continuation joined = Cut(context, "The king");
    Ids expected = tokenizer_->Encode(context + "The king");
    expected.insert(expected.begin(), kEndOfText);
    EXPECT_EQ(joined.ids, expected);
    EXPECT_EQ(joined.begin, 1);
  }
  EXPECT_EQ(Join(Ids(), Ids({7}), nullptr, 9)->ids, Ids({9, 7}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Join(Ids(), Ids({7}), nullptr, -1).status()));
}

TEST_F(JoinTest, TokenIdsNeedNoTokenizer) {
  const auto joined = Join(Ids({1, 2}), Ids({3}), nullptr, -1);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->ids, Ids({1, 2, 3}));
  EXPECT_EQ(joined->begin, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Join(std::string("a"), std::string("b"), nullptr, kEndOfText).status()));
}

TEST_F(JoinTest, AContinuationHasATokenOfItsOwn) {
  ASSERT_EQ(Count("the"), 1);
  ASSERT_EQ(Count("th"), 1);  // "the" has no token that "th" has not
  EXPECT_TRUE(absl::IsInvalidArgument(
      Join(std::string("th"), std::string("e"), tokenizer_.get(), kEndOfText).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Join(std::string("a"), std::string(), tokenizer_.get(), kEndOfText).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join(Ids(), Ids(), nullptr, kEndOfText).status()));
}

TEST(ScoreContinuationTest, IsTheSumThatEvaluationWouldGive) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, TinyConfig());
  // Two random tokens with those behind them that are the likeliest, then one that is not.
  Ids ids = RandomIds(2, 40, 5);
  std::vector<float> expected = {0, 0};
  const auto append = [&](bool best) {
    const auto sink = [&](int64_t first, std::span<const float> logits) {
      const auto row = logits.last(model->config().padded_vocab_size).first(40);
      const auto chosen = best ? std::max_element(row.begin(), row.end())
                               : std::min_element(row.begin(), row.end());
      if (first + std::ssize(logits) / 48 < std::ssize(ids)) return;
      const auto id = static_cast<int32_t>(chosen - row.begin());
      expected.push_back(static_cast<float>(-NegativeLogLikelihood(row, 40, id)));
      ids.push_back(id);
    };
    ASSERT_TRUE(Forward(*backend, *model, Ids(ids), {}, sink).ok());
  };
  for (int i = 0; i < 3; ++i) append(true);
  auto score = ScoreContinuation(*backend, *model, {ids, 2});
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_EQ(score->log_probability, double{expected[2]} + expected[3] + expected[4]);
  EXPECT_EQ(score->tokens, 3);
  EXPECT_TRUE(score->greedy);
  append(false);
  score = ScoreContinuation(*backend, *model, {ids, 4});
  EXPECT_EQ(score->log_probability, double{expected[4]} + expected[5]);
  EXPECT_FALSE(score->greedy);
}

TEST(LikeliestTest, IsTheFirstOfEquals) {
  const std::vector<ContinuationScore> scores = {{-3, 1, true}, {-2, 1, true}, {-2, 1, true}};
  EXPECT_EQ(Likeliest(scores), 1);
}

class EvalChoicesTest : public testing::Test {
 protected:
  // The exit code of the command with `lines` as data.
  int Run(const std::string& lines) {
    std::vector<std::string> arguments = {"choices",
                                          "--model",
                                          kModel,
                                          "--data",
                                          directory_.Write("data.jsonl", lines),
                                          "--scores",
                                          directory_.File("scores.jsonl"),
                                          "--device",
                                          "cpu",
                                          "--threads",
                                          "1",
                                          "--json",
                                          directory_.File("out.json")};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = EvalChoices(static_cast<int>(argv.size()), argv.data());
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  const TemporaryDirectory directory_;
  std::string error_;
};

TEST_F(EvalChoicesTest, CountsWhereTheLikeliestIsGold) {
  const std::string choices = R"("choices": ["of Babylon", "xq zzv pkrt"])";
  ASSERT_EQ(Run(R"({"context": "The king ", )" + choices + R"(, "gold": 0})" + "\n" +
                R"({"context": "The king ", )" + choices + R"(, "gold": 1})" + "\n" +
                R"({"context": [], "choices": [[5, 6], [4095]], "gold": 0})" + "\n"),
            0)
      << error_;
  const auto result = nlohmann::json::parse(FileContent(directory_.File("out.json")));
  EXPECT_EQ(result["task"], "choices");
  EXPECT_EQ(result["examples"], 3);
  EXPECT_EQ(result["choices"], 6);
  std::vector<nlohmann::json> scores;
  std::istringstream lines(FileContent(directory_.File("scores.jsonl")));
  for (std::string line; std::getline(lines, line);) scores.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(scores.size(), 3);
  EXPECT_EQ(scores[0]["best"], 0);
  EXPECT_EQ(scores[1], scores[0]);
  const auto& both = scores[0]["log_probabilities"];
  ASSERT_EQ(both.size(), 2);
  EXPECT_GT(both[0].get<double>(), both[1].get<double>());
  EXPECT_LT(both[0].get<double>(), 0);
  EXPECT_FALSE(scores[0]["greedy"][1]);
  EXPECT_EQ(scores[2]["tokens"], nlohmann::json({2, 1}));
  const double right = 1 + (scores[2]["best"] == 0 ? 1 : 0);
  EXPECT_EQ(result["accuracy"], right / 3);
  int64_t tokens = 0;
  for (const auto& score : scores) {
    for (const int64_t count : score["tokens"]) tokens += count;
  }
  EXPECT_EQ(result["tokens"], tokens);
}

TEST_F(EvalChoicesTest, ErrorsNameTheLineAndTheChoice) {
  EXPECT_EQ(Run("{\"context\": \"a\", \"choices\": [\" b\", \"\"], \"gold\": 0}\n"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 1: choices[1]: it has no token of its own"));
  EXPECT_EQ(Run("\n{\"context\": [1], \"choices\": [[4096]], \"gold\": 0}\n"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 2: choices[0]: "));
  EXPECT_THAT(error_, HasSubstr("4096"));
  EXPECT_EQ(Run("{}"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 1: context: expected"));
}

}  // namespace
}  // namespace hippodrome::eval_choices_test
