#include "kernels/cpu/rows/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "kernels/counter_uniform.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::sample_test {
namespace {

using Values = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

int32_t SampleOne(const Values& logits, const SamplingParameters& p, int64_t position = 0,
                  int64_t vocab = -1) {
  ThreadPool pool(1);
  const StridedMatrix in(1, static_cast<int64_t>(logits.size()), 1, logits);
  OwnedTensor token = NewMatrix(1, 1, DType::kI32);
  const SamplingRow row = {p, position};
  Sample(pool, in.view(), vocab < 0 ? in.view().cols : vocab, {&row, 1}, {}, token);
  return I32Row(token, 0)[0];
}

// How often each token comes up in `draws` draws.
std::map<int32_t, int> Count(const Values& logits, SamplingParameters p, int draws) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    p.seed = static_cast<uint64_t>(i) / 100;
    ++counts[SampleOne(logits, p, i % 100)];
  }
  return counts;
}

// Logits whose softmax is `probabilities`.
Values Logits(const std::vector<double>& probabilities) {
  Values logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// Chi-square of the counts against the probabilities. Its mean is n - 1 and its variance 2 (n - 1):
// the seeds are fixed, so a bound of six deviations is only a wide margin, not a gamble.
void ExpectDistribution(const std::map<int32_t, int>& counts, const std::vector<double>& expected,
                        int draws) {
  double chi_square = 0;
  int cells = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto found = counts.find(static_cast<int32_t>(i));
    const int count = found == counts.end() ? 0 : found->second;
    if (expected[i] == 0) {
      EXPECT_EQ(count, 0) << "token " << i << " was excluded";
      continue;
    }
    const double mean = expected[i] * draws;
    chi_square += (count - mean) * (count - mean) / mean;
    ++cells;
  }
  const double freedom = std::max(1, cells - 1);
  EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom));
}

TEST(SampleTest, GreedyTakesTheLargestAndTheFirstAmongEquals) {
  const SamplingParameters greedy = {.temperature = 0};
  EXPECT_EQ(SampleOne({1, 3, 2}, greedy), 1);
  EXPECT_EQ(SampleOne({1, 3, 3}, greedy), 1);
  EXPECT_EQ(SampleOne({-kInfinity, -5, -kInfinity}, greedy), 1);
  // In vectors of all sizes, several at a time, and behind them.
  for (const size_t first : {0, 15, 16, 40, 63, 64, 777, 998}) {
    Values many = RandomValues(1000, 1);
    many[first] = many[first + 1] = many[999] = 2;
    EXPECT_EQ(SampleOne(many, greedy), static_cast<int32_t>(first));
  }
}

TEST(SampleTest, PaddedTokensAreNeverChosen) {
  Values logits(100, 0);
  for (size_t i = 90; i < 100; ++i) logits[i] = 50;
  EXPECT_LT(SampleOne(logits, {.temperature = 0}, 0, 90), 90);
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_LT(SampleOne(logits, {}, position, 90), 90);
  }
}

TEST(SampleTest, RowsWithoutADistributionGiveNoToken) {
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingParameters p = {.temperature = temperature};
    EXPECT_EQ(SampleOne({kNaN, kNaN}, p), -1);
    EXPECT_EQ(SampleOne({-kInfinity, -kInfinity}, p), -1);
    EXPECT_EQ(SampleOne({kNaN, 1, kNaN}, p), -1);
    EXPECT_EQ(SampleOne({0, kInfinity, 5}, p), -1);
    EXPECT_GE(SampleOne(RandomValues(1000, 2), p), 0);
    for (const size_t at : {0, 20, 40, 63, 500, 999}) {
      Values many = RandomValues(1000, 2);
      many[at] = kNaN;
      EXPECT_EQ(SampleOne(many, p), -1);
    }
  }
}

TEST(SampleTest, OddLogitsAreSurvived) {
  EXPECT_EQ(SampleOne({0, 7, -kInfinity}, {.temperature = 1e-40f}), 1);
  EXPECT_EQ(SampleOne({-kInfinity, 7, -kInfinity}, {.typical_p = 0.5f}), 1);
  EXPECT_EQ(SampleOne({4}, {.top_k = 3, .top_p = 0.1f, .min_p = 1}), 0);
}

TEST(SampleTest, FollowsTheSoftmax) {
  const std::vector<double> p = {0.5, 0.05, 0.25, 0.125, 0.07, 0.005};
  ExpectDistribution(Count(Logits(p), {}, 20000), p, 20000);
}

TEST(SampleTest, FollowsTheTemperature) {
  const std::vector<double> p = {0.6, 0.3, 0.1};
  std::vector<double> flatter;
  double total = 0;
  for (double x : p) total += std::sqrt(x);
  for (double x : p) flatter.push_back(std::sqrt(x) / total);
  ExpectDistribution(Count(Logits(p), {.temperature = 2}, 20000), flatter, 20000);
  ExpectDistribution(Count(Logits(p), {.temperature = 1e30f}, 20000), {1. / 3, 1. / 3, 1. / 3},
                     20000);
}

TEST(SampleTest, TopKKeepsTheMostLikely) {
  const Values logits = Logits({0.1, 0.4, 0.2, 0.3});
  ExpectDistribution(Count(logits, {.top_k = 2}, 5000), {0, 4. / 7, 0, 3. / 7}, 5000);
  ExpectDistribution(Count(logits, {.top_k = 1}, 100), {0, 1, 0, 0}, 100);
  ExpectDistribution(Count(logits, {.top_k = 9}, 5000), {0.1, 0.4, 0.2, 0.3}, 5000);
  // Among equals the smallest ids stay.
  ExpectDistribution(Count({0, 0, 0, 0}, {.top_k = 2}, 5000), {0.5, 0.5, 0, 0}, 5000);
}

TEST(SampleTest, TopKOfManyTokensMatchesAFullSort) {
  const Values logits = RandomValues(5000, 3, 8);
  for (int32_t k : {1, 5, 70, 200}) {
    std::multiset<float> sorted(logits.begin(), logits.end());
    const float least = *std::next(sorted.rbegin(), k - 1);
    for (const auto& [token, count] : Count(logits, {.temperature = 100, .top_k = k}, 300)) {
      EXPECT_GE(logits[static_cast<size_t>(token)], least) << "k = " << k;
    }
  }
}

TEST(SampleTest, TopPKeepsTheSmallestSetThatReachesIt) {
  const Values logits = Logits({0.1, 0.4, 0.2, 0.3});
  ExpectDistribution(Count(logits, {.top_p = 0.65f}, 5000), {0, 4. / 7, 0, 3. / 7}, 5000);
  ExpectDistribution(Count(logits, {.top_p = 0.75f}, 5000), {0, 4. / 9, 2. / 9, 3. / 9}, 5000);
  ExpectDistribution(Count(logits, {.top_p = 1e-6f}, 100), {0, 1, 0, 0}, 100);
  ExpectDistribution(Count(logits, {.top_p = 1}, 5000), {0.1, 0.4, 0.2, 0.3}, 5000);
}

TEST(SampleTest, TopPOfAFlatDistributionKeepsItsShare) {
  const Values logits(1000, 0.5f);
  for (const auto& [token, count] : Count(logits, {.top_p = 0.1f}, 2000)) EXPECT_LT(token, 101);
}

// Where the draw falls in the descending order, of all tokens or of those that top_p keeps: within
// what sums of floats lose, and a token at the cut.
TEST(SampleTest, DrawsFromManyTokensAsAFullSortDoes) {
  constexpr int64_t kVocab = 50000;
  for (const float spread : {0.0f, 0.5f, 3.0f, 12.0f}) {
    Values logits = RandomValues(kVocab, 7, 1);
    for (float& l : logits) l *= spread;
    std::vector<int32_t> order(kVocab);
    std::iota(order.begin(), order.end(), 0);
    const auto logit = [&](int32_t token) { return logits[static_cast<size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
    std::vector<double> sums(kVocab);  // of the weights before and with a token
    double total = 0;
    for (const int32_t token : order) {
      total += std::exp(static_cast<double>(logit(token)) - logit(order[0]));
      sums[static_cast<size_t>(token)] = total;
    }
    for (const float top_p : {1.0f, 0.9f, 0.1f}) {
      const auto last = std::find_if(order.begin(), order.end() - 1, [&](int32_t token) {
        return sums[static_cast<size_t>(token)] >= static_cast<double>(top_p) * total;
      });
      const double kept = sums[static_cast<size_t>(*last)];
      for (int64_t position = 0; position < 40; ++position) {
        const int32_t token = SampleOne(logits, {.top_p = top_p, .seed = 5}, position);
        const double sum = sums[static_cast<size_t>(token)];
        const double weight = std::exp(static_cast<double>(logit(token)) - logit(order[0]));
        const double mass = CounterUniform(5, static_cast<uint64_t>(position)) * kept;
        const double slack = 1e-4 * total;
        EXPECT_GE(sum + slack, mass) << spread << " " << top_p << " " << position;
        EXPECT_LE(sum - weight - slack, mass) << spread << " " << top_p << " " << position;
      }
    }
  }
}

TEST(SampleTest, MinPDropsTheUnlikely) {
  const Values logits = Logits({0.1, 0.4, 0.2, 0.3});
  ExpectDistribution(Count(logits, {.min_p = 0.45f}, 5000), {0, 4. / 9, 2. / 9, 3. / 9}, 5000);
  ExpectDistribution(Count(logits, {.min_p = 1}, 100), {0, 1, 0, 0}, 100);
}

TEST(SampleTest, TypicalPKeepsTheSurprisesNearTheirMean) {
  // The mean surprise is 0.898, from which the surprises differ by 1.40, 0.387 and 0.306.
  const Values logits = Logits({0.1, 0.6, 0.3});
  ExpectDistribution(Count(logits, {.typical_p = 0.25f}, 500), {0, 0, 1}, 500);
  ExpectDistribution(Count(logits, {.typical_p = 0.8f}, 5000), {0, 2. / 3, 1. / 3}, 5000);
  ExpectDistribution(Count(logits, {.typical_p = 0.95f}, 5000), {0.1, 0.6, 0.3}, 5000);
  // With top_k the mean is that of what it leaves, and min_p is relative to what is left.
  ExpectDistribution(Count(logits, {.top_k = 2, .min_p = 0.9f, .typical_p = 0.3f}, 500), {0, 1, 0},
                     500);
  ExpectDistribution(Count(logits, {.min_p = 0.9f, .typical_p = 0.25f}, 500), {0, 0, 1}, 500);
}

TEST(SampleTest, AdjustmentsChangeTheChoiceAndAreUndone) {
  const Values before = {1, 3, 2, -1, 3, 2};
  const StridedMatrix in(2, 3, 1, before);
  const std::vector<SamplingRow> rows(2, SamplingRow{.parameters = {.temperature = 0}});
  OwnedTensor offsets = NewMatrix(1, 3, DType::kI32);
  OwnedTensor entries = NewMatrix(3, kAdjustmentColumns, DType::kI32);
  OwnedTensor tokens = NewMatrix(1, 2, DType::kI32);
  // Row 0: 3 / 2 = 1.5 < 2. Row 1: -1 * 2 + 9 = 7, and 3 - 1.
  const std::vector<LogitAdjustment> adjustments = {{1, 2, 0}, {0, 2, 9}, {1, 1, -1}};
  const std::span<const int32_t> values = AsIndices(adjustments);
  std::copy(values.begin(), values.end(), I32Row(entries, 0));
  I32Row(offsets, 0)[0] = 0;
  I32Row(offsets, 0)[1] = 1;
  I32Row(offsets, 0)[2] = 3;
  ThreadPool pool(2);
  Sample(pool, in.view(), 3, rows, {offsets, entries}, tokens);
  EXPECT_EQ(I32Row(tokens, 0)[0], 2);
  EXPECT_EQ(I32Row(tokens, 0)[1], 0);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(F32Row(in.view(), i / 3)[i % 3], before[static_cast<size_t>(i)]);
  }
}

TEST(SampleTest, FiltersApplyInOrder) {
  const Values logits = Logits({0.1, 0.4, 0.2, 0.3});
  // top_k leaves 4:3:2, min_p leaves 4:3, top_p of 0.57 of those leaves the first alone.
  const SamplingParameters p = {.top_k = 3, .top_p = 0.57f, .min_p = 0.6f};
  ExpectDistribution(Count(logits, p, 100), {0, 1, 0, 0}, 100);
}

TEST(SampleTest, RowsDrawAlikeAloneAndTogether) {
  constexpr int64_t kRows = 17;
  constexpr int64_t kVocab = 1000;
  const Values logits = RandomValues(kRows * kVocab, 5, 3);
  std::vector<SamplingRow> rows;
  for (int64_t i = 0; i < kRows; ++i) {
    rows.push_back({{.temperature = 0.5f + static_cast<float>(i) / 8,
                     .top_k = static_cast<int32_t>(i % 3 * 20),
                     .top_p = i % 2 == 0 ? 1 : 0.8f,
                     .seed = static_cast<uint64_t>(i * i)},
                    i * 3});
  }
  ThreadPool pool(3);
  const StridedMatrix in(kRows, kVocab, 1, logits);
  OwnedTensor tokens = NewMatrix(1, kRows, DType::kI32);
  Sample(pool, in.view(), kVocab, rows, {}, tokens);
  for (int64_t i = 0; i < kRows; ++i) {
    const Values row(logits.begin() + i * kVocab, logits.begin() + (i + 1) * kVocab);
    const size_t at = static_cast<size_t>(i);
    EXPECT_EQ(I32Row(tokens, 0)[i], SampleOne(row, rows[at].parameters, rows[at].position));
  }
}

TEST(LogProbabilitiesTest, AreThoseOfTheSoftmaxInDouble) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kVocab = 1003;
  const Values logits = RandomValues(kRows * (kVocab + 2), 7, 9);
  const StridedMatrix in(kRows, kVocab + 2, 1, logits);
  OwnedTensor tokens = NewMatrix(1, kRows, DType::kI32);
  OwnedTensor likeliest = NewMatrix(kRows, 4, DType::kI32);
  OwnedTensor out = NewMatrix(kRows, 5, DType::kF32);
  for (int32_t i = 0; i < kRows; ++i) I32Row(tokens, 0)[i] = i == 3 ? -1 : 17 * i;
  ThreadPool pool(2);
  LogProbabilities(pool, in.view(), kVocab, tokens, likeliest, out);
  for (int64_t r = 0; r < kRows; ++r) {
    const float* l = F32Row(in.view(), r);
    double sum = 0;
    for (int64_t i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(l[i]));
    std::vector<float> sorted(l, l + kVocab);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const auto expected = [&](float logit) { return static_cast<float>(logit - std::log(sum)); };
    EXPECT_FLOAT_EQ(F32Row(out, r)[0], r == 3 ? 0 : expected(l[17 * r]));
    for (int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(l[I32Row(likeliest, r)[k]], sorted[static_cast<size_t>(k)]);
      EXPECT_FLOAT_EQ(F32Row(out, r)[k + 1], expected(sorted[static_cast<size_t>(k)]));
    }
  }
}

TEST(LogProbabilitiesTest, TheLikeliestTokenHasOneValueHoweverItIsAsked) {
  const Values logits = {0.3f, 2.5f, 2.5f, -1};
  const StridedMatrix in(1, 4, 1, logits);
  OwnedTensor tokens = NewMatrix(1, 1, DType::kI32);
  OwnedTensor likeliest = NewMatrix(1, 4, DType::kI32);
  OwnedTensor out = NewMatrix(1, 5, DType::kF32);
  I32Row(tokens, 0)[0] = 2;
  ThreadPool pool(1);
  LogProbabilities(pool, in.view(), 4, tokens, likeliest, out);
  EXPECT_EQ(I32Row(likeliest, 0)[0], 1);
  EXPECT_EQ(I32Row(likeliest, 0)[1], 2);
  EXPECT_EQ(I32Row(likeliest, 0)[3], 3);
  EXPECT_EQ(F32Row(out, 0)[0], F32Row(out, 0)[1]);
  EXPECT_EQ(F32Row(out, 0)[1], F32Row(out, 0)[2]);
}

}  // namespace
}  // namespace hippodrome::cpu::sample_test
