#include "engine/tasks/answer_spans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace hippodrome::answer_spans_test {
namespace {

constexpr double kRounding = 1e-12;  // a few roundings of numbers of the order of 1

// [CLS] q [SEP] c .. c [SEP], the context's tokens two code points each with a space between.
EncodedText Window(int64_t context_tokens, int64_t first = 0) {
  EncodedText window;
  const auto add = [&](int8_t sequence, int64_t begin, int64_t end) {
    window.ids.push_back(0);
    window.types.push_back(sequence == 1);
    window.pieces.push_back({.begin = begin, .end = end});
    window.sequence.push_back(sequence);
  };
  add(-1, 0, 0);
  add(0, 0, 4);
  add(-1, 0, 0);
  for (int64_t t = first; t < first + context_tokens; ++t) add(1, 3 * t, 3 * t + 2);
  add(-1, 0, 0);
  return window;
}

using Places = std::vector<std::pair<int64_t, int64_t>>;
Places PlacesOf(const std::vector<AnswerSpan>& answers) {
  Places places;
  for (const AnswerSpan& answer : answers) places.emplace_back(answer.begin, answer.end);
  return places;
}

TEST(AnswerSpansTest, BestSumOfStartAndEnd) {
  const EncodedText window = Window(3);
  //                                [CLS] q [SEP] c0 c1 c2 [SEP]
  const std::vector<float> start = {-9, -9, -9, 1, 4, 3, -9};
  const std::vector<float> end = {-9, -9, -9, 5, 0, 2, -9};
  const std::vector<WindowScores> scores = {{&window, start, end}};
  const auto answers = BestAnswers(scores, {.top_k = 3});
  // 4 + 5 would be best, but it ends before it starts.
  EXPECT_EQ(PlacesOf(answers), (Places{{0, 2}, {3, 8}, {6, 8}}));
  EXPECT_EQ(answers[0].logit, 6);
  EXPECT_EQ(answers[1].logit, 6);
  EXPECT_EQ(answers[2].logit, 5);
  // All spans: 6, 6, 5, 4, 3, 1 by hand.
  const double sum = 2 + std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0) + std::exp(-5.0);
  EXPECT_NEAR(answers[0].score, 1 / sum, kRounding);
  EXPECT_NEAR(answers[2].score, std::exp(-1.0) / sum, kRounding);
}

TEST(AnswerSpansTest, OnlyTheContextAnswers) {
  const EncodedText window = Window(1);
  const std::vector<float> logits = {9, 9, 9, 1, 9};
  const std::vector<WindowScores> scores = {{&window, logits, logits}};
  EXPECT_EQ(PlacesOf(BestAnswers(scores, {.top_k = 5})), (Places{{0, 2}}));
  // The candidates are taken before: here they are all outside.
  EXPECT_TRUE(BestAnswers(scores, {.candidates = 3}).empty());
}

TEST(AnswerSpansTest, AnswersHaveALimitInTokens) {
  const EncodedText window = Window(3);
  const std::vector<float> start = {0, 0, 0, 9, 0, 0, 0};
  const std::vector<float> end = {0, 0, 0, 0, 1, 9, 0};
  const std::vector<WindowScores> scores = {{&window, start, end}};
  EXPECT_EQ(PlacesOf(BestAnswers(scores, {.max_answer_tokens = 3})), (Places{{0, 8}}));
  EXPECT_EQ(PlacesOf(BestAnswers(scores, {.max_answer_tokens = 2})), (Places{{0, 5}}));
}

TEST(AnswerSpansTest, APlaceInTwoWindowsCountsOnceWithItsBestScore) {
  const EncodedText first = Window(2, 0);
  const EncodedText second = Window(2, 1);
  const std::vector<float> low = {0, 0, 0, -50, 2, 0};
  const std::vector<float> high = {0, 0, 0, 3, -50, 0};
  const std::vector<WindowScores> scores = {{&first, low, low}, {&second, high, high}};
  const auto answers = BestAnswers(scores, {.top_k = 2});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].begin, 3);
  EXPECT_EQ(answers[0].end, 5);
  EXPECT_EQ(answers[0].logit, 6);
  EXPECT_NE(PlacesOf(answers)[1], PlacesOf(answers)[0]);
}

class NoAnswerTest : public testing::Test {
 protected:
  // The best span has 4; no answer 3 in one window and 10 in the other.
  std::vector<AnswerSpan> Best(double threshold, int64_t top_k = 9) {
    return BestAnswers(scores_,
                       {.top_k = top_k, .allow_no_answer = true, .no_answer_threshold = threshold});
  }

  const EncodedText window_ = Window(2);
  const std::vector<float> span_ = {1.5, -9, -9, 2, -7, -9};
  const std::vector<float> other_ = {5, -9, -9, -8, -7, -9};
  const std::vector<WindowScores> scores_ = {{&window_, span_, span_}, {&window_, other_, other_}};
};

TEST_F(NoAnswerTest, ScoresTheLeastOfAllWindows) {
  const auto answers = Best(0);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].logit, 4);
  EXPECT_FALSE(answers[0].no_answer);
  EXPECT_TRUE(answers[1].no_answer);
  EXPECT_EQ(answers[1].logit, 3);
  EXPECT_EQ(answers[1].begin, 0);
  EXPECT_EQ(answers[1].end, 0);
}

TEST_F(NoAnswerTest, ComesFirstOnlyBeyondTheThreshold) {
  EXPECT_TRUE(Best(-1.5, 1).at(0).no_answer);
  EXPECT_FALSE(Best(-1.0, 1).at(0).no_answer);  // exceeds by exactly the threshold
  EXPECT_FALSE(Best(100, 1).at(0).no_answer);
}

TEST_F(NoAnswerTest, SharesTheProbabilities) {
  // -5, of starting at one token and ending at the next, and -14 are the other spans.
  const double sum = std::exp(0.0) + std::exp(-1.0) + std::exp(-9.0) + std::exp(-18.0);
  EXPECT_NEAR(Best(0, 1).at(0).score, 1 / sum, kRounding);
}

TEST(AnswerSpansTest, NoContextHasNoAnswerAtMost) {
  const EncodedText window = Window(0);
  const std::vector<float> logits = {1, 0, 0, 0};
  const std::vector<WindowScores> scores = {{&window, logits, logits}};
  EXPECT_TRUE(BestAnswers(scores, {}).empty());
  EXPECT_EQ(BestAnswers(scores, {.allow_no_answer = true}).size(), 1U);
}

TEST(QuestionWindowsTest, OneWindowForAContextThatFits) {
  const auto plan = PlanQuestionWindows(7, 10, 20, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->part, 10);
  EXPECT_EQ(plan->windows, 1);
  EXPECT_EQ(PlanQuestionWindows(7, 0, 20, 4)->windows, 1);
}

TEST(QuestionWindowsTest, PartsOverlapByTheStride) {
  // Parts [0, 10), [6, 16), [12, 22).
  EXPECT_EQ(PlanQuestionWindows(7, 11, 20, 4)->windows, 2);
  EXPECT_EQ(PlanQuestionWindows(7, 16, 20, 4)->windows, 2);
  EXPECT_EQ(PlanQuestionWindows(7, 17, 20, 4)->windows, 3);
  EXPECT_EQ(PlanQuestionWindows(7, 22, 20, 4)->windows, 3);
  EXPECT_EQ(PlanQuestionWindows(7, 22, 20, 4)->step, 6);
}

TEST(QuestionWindowsTest, AtMostHalfOfAPartOverlaps) {
  EXPECT_EQ(PlanQuestionWindows(7, 100, 20)->step, 5);
  EXPECT_EQ(PlanQuestionWindows(16, 100, 20)->step, 1);
}

TEST(QuestionWindowsTest, TheQuestionMustLeaveRoom) {
  EXPECT_TRUE(PlanQuestionWindows(16, 1, 20).ok());
  const auto plan = PlanQuestionWindows(17, 1, 20);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kOutOfRange);
}

TEST(QuestionWindowsTest, LaysOutEachPart) {
  const auto tokenizer =
      WordPieceTokenizer::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nq\na\nb\nc\n");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto question = (*tokenizer)->Tokenize("q");
  const auto context = (*tokenizer)->Tokenize("a b c");
  const auto windows = QuestionWindows(**tokenizer, question, context, 6, 1);
  ASSERT_TRUE(windows.ok()) << windows.status();
  ASSERT_EQ(windows->size(), 2U);
  EXPECT_EQ((*windows)[0].ids, (std::vector<int32_t>{2, 5, 3, 6, 7, 3}));
  EXPECT_EQ((*windows)[1].ids, (std::vector<int32_t>{2, 5, 3, 7, 8, 3}));
  EXPECT_EQ((*windows)[1].types, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ((*windows)[1].pieces[4].begin, 4);
}

}  // namespace
}  // namespace hippodrome::answer_spans_test
