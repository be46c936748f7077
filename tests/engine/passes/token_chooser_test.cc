#include "engine/passes/token_chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "engine/sampling.h"
#include "kernels/cpu/rows/sample.h"
#include "kernels/make_backend.h"

namespace hippodrome::token_chooser_test {
namespace {

constexpr int64_t kVocab = 50;
constexpr int64_t kPadded = 64;
constexpr int64_t kRows = 8;

class TokenChooserTest : public testing::Test {
 protected:
  TokenChooserTest() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 3);
    for (float& value : values_) value = normal(random);
    // What is beyond the vocabulary would win.
    for (int64_t r = 0; r < kRows; ++r) {
      std::fill(values_.begin() + r * kPadded + kVocab, values_.begin() + (r + 1) * kPadded, 99.f);
    }
    logits_ = backend_->NewTensor(kRows, kPadded);
    backend_->Upload(values_, logits_.view);
  }

  std::span<const float> Row(int64_t r) const {
    return std::span(values_).subspan(r * kPadded, kVocab);
  }
  int32_t Argmax(int64_t r) const {
    const auto row = Row(r);
    return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
  }
  float LogProbability(int64_t r, int32_t token) const {
    return static_cast<float>(Row(r)[token] - cpu::LogSumExp(Row(r)));
  }

  std::vector<TokenChoice> Choose(const std::vector<HowToChoose>& how, int64_t rows) {
    kind_ = chooser_.Add(how, rows);
    indices_.Upload();
    chooser_.Run(kind_, logits_.view.Rows(0, rows));
    return chooser_.Download(kind_, how);
  }
  std::vector<TokenChoice> Choose(const std::vector<HowToChoose>& how) {
    return Choose(how, std::ssize(how));
  }

  static HowToChoose Greedy() { return {.sampling = {.parameters = {.temperature = 0}}}; }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  std::vector<float> values_ = std::vector<float>(kRows * kPadded);
  OwnedTensor logits_;
  IndexMatrices indices_{*backend_};
  TokenChooser chooser_{*backend_, kVocab, kRows, indices_};
  TokenChooser::Kind kind_;
};

TEST_F(TokenChooserTest, WhatNobodyAsksForIsNotThere) {
  const auto choices = Choose({Greedy(), Greedy()});
  EXPECT_FALSE(kind_.adjusts);
  EXPECT_EQ(kind_.likeliest, -1);
  ASSERT_EQ(choices.size(), 2);
  for (int64_t r = 0; r < 2; ++r) {
    EXPECT_EQ(choices[r].token, Argmax(r));
    EXPECT_FALSE(choices[r].scores.has_value());
  }
}

TEST_F(TokenChooserTest, EachRowHasTheAlternativesThatItAskedFor) {
  std::vector<HowToChoose> how(5, Greedy());
  how[1].likeliest = 0;
  how[2].likeliest = 3;
  how[4].likeliest = kMaxLikeliest;
  const auto choices = Choose(how);
  EXPECT_FALSE(choices[0].scores || choices[3].scores);
  for (const size_t r : {1, 2, 4}) {
    const TokenScores& scores = choices[r].scores.value();
    EXPECT_EQ(scores.log_probability, LogProbability(r, choices[r].token));
    ASSERT_EQ(std::ssize(scores.likeliest), *how[r].likeliest);
    std::vector<int32_t> order(kVocab);
    for (int32_t v = 0; v < kVocab; ++v) order[v] = v;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return Row(r)[a] > Row(r)[b]; });
    for (size_t i = 0; i < scores.likeliest.size(); ++i) {
      EXPECT_EQ(scores.likeliest[i].token, order[i]);
      EXPECT_EQ(scores.likeliest[i].log_probability, LogProbability(r, order[i]));
    }
  }
}

// Each width is another recording.
TEST_F(TokenChooserTest, WidthsAreFew) {
  const auto width = [&](int32_t likeliest) {
    HowToChoose how = Greedy();
    how.likeliest = likeliest;
    return chooser_.Add({&how, 1}, 1).likeliest;
  };
  EXPECT_EQ(width(0), 0);
  EXPECT_EQ(width(1), 1);
  EXPECT_EQ(width(3), 4);
  EXPECT_EQ(width(5), 8);
  EXPECT_EQ(width(17), kMaxLikeliest);
  TokenChooser small(*backend_, 3, 1, indices_);
  HowToChoose how = Greedy();
  how.likeliest = 20;
  EXPECT_EQ(small.Add({&how, 1}, 1).likeliest, 3);
}

TEST_F(TokenChooserTest, AdjustmentsMoveTheChoiceOfTheirRowAndNoLogProbability) {
  const std::vector<LogitAdjustment> away = {{.token = Argmax(1), .addend = -100}};
  const std::vector<LogitAdjustment> toward = {{.token = 3, .repetition = 2, .addend = 1},
                                               {.token = 7, .addend = 200}};
  std::vector<HowToChoose> how(4, Greedy());
  how[1].adjustments = away;
  how[1].likeliest = 1;
  how[3].adjustments = toward;
  how[3].likeliest = 0;
  const auto choices = Choose(how);
  EXPECT_TRUE(kind_.adjusts);
  EXPECT_EQ(choices[0].token, Argmax(0));
  EXPECT_EQ(choices[2].token, Argmax(2));
  EXPECT_NE(choices[1].token, Argmax(1));
  EXPECT_EQ(choices[1].scores->likeliest[0].token, Argmax(1));
  EXPECT_EQ(choices[1].scores->log_probability, LogProbability(1, choices[1].token));
  EXPECT_EQ(choices[3].token, 7);
  EXPECT_EQ(choices[3].scores->log_probability, LogProbability(3, 7));
  std::vector<float> after(values_.size());
  backend_->Download(logits_.view, after);
  EXPECT_EQ(after, values_);
}

TEST_F(TokenChooserTest, ARowIsChosenAlikeBesideAnyOthers) {
  HowToChoose drawn{.sampling = {.parameters = {.temperature = 1.5f, .seed = 11}, .position = 4}};
  const auto alone = Choose({drawn});
  std::vector<HowToChoose> how(3, Greedy());
  how[0] = drawn;
  how[0].likeliest = 2;
  const std::vector<LogitAdjustment> some = {{.token = 1, .addend = 5}};
  how[2].adjustments = some;
  EXPECT_EQ(Choose(how, kRows)[0].token, alone[0].token);
  how[0].sampling.position = 5;
  std::vector<int32_t> tokens;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    how[0].sampling.parameters.seed = seed;
    tokens.push_back(Choose(how)[0].token);
  }
  EXPECT_GT(std::count_if(tokens.begin(), tokens.end(), [&](int32_t t) { return t != tokens[0]; }),
            0);
}

TEST_F(TokenChooserTest, OnlyTheLastMatrixIsAsLargeAsTheAdjustments) {
  std::vector<LogitAdjustment> five;
  for (int32_t i = 0; i < 5; ++i) five.push_back({.token = i});
  std::vector<HowToChoose> how(2, Greedy());
  const auto places = [&](size_t adjustments) {
    how[1].adjustments = std::span(five).first(adjustments);
    Choose(how);
    std::vector<const void*> first;
    for (size_t i = 0; i < 3; ++i) first.push_back(indices_[i].data);
    EXPECT_EQ(indices_[2].rows, static_cast<int64_t>(adjustments));
    return first;
  };
  const auto of_five = places(5);
  EXPECT_EQ(places(2), of_five);
}

TEST_F(TokenChooserTest, WithoutADistributionThereIsNoTokenAndNoScore) {
  values_[kPadded + 9] = std::numeric_limits<float>::quiet_NaN();
  backend_->Upload(values_, logits_.view);
  std::vector<HowToChoose> how(3, Greedy());
  for (HowToChoose& h : how) h.likeliest = 2;
  const auto choices = Choose(how);
  EXPECT_EQ(choices[1].token, -1);
  EXPECT_FALSE(choices[1].scores.has_value());
  EXPECT_EQ(choices[0].token, Argmax(0));
  EXPECT_EQ(choices[2].scores->log_probability, LogProbability(2, Argmax(2)));
}

}  // namespace
}  // namespace hippodrome::token_chooser_test
