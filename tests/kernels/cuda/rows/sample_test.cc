#include "kernels/cuda/rows/sample.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/rows/sample.h"
#include "kernels/cuda/base/tensor_memory.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cuda::sample_test {
namespace {

using Values = std::vector<float>;
using Tokens = std::vector<int32_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// What the device chooses for rows.size() rows of logits, which lie apart in its memory.
Tokens OnDevice(const Values& logits, int64_t vocab, const std::vector<SamplingRow>& rows) {
  Device device;
  const auto count = static_cast<int64_t>(rows.size());
  const auto columns = static_cast<int64_t>(logits.size()) / count;
  const OwnedTensor memory = NewMatrix(device, count, columns + 3, DType::kF32);
  const Tensor in = memory.view.Cols(3, columns);
  const OwnedTensor parameters = NewMatrix(device, count, kSamplingColumns, DType::kI32);
  const OwnedTensor out = NewMatrix(device, 1, count, DType::kI32);
  CopyIn(device, logits, in);
  CopyIn(device, AsIndices(rows), parameters);
  Sample(device, in, vocab, parameters, {}, out);
  Tokens tokens(rows.size());
  CopyOut(device, out, std::span<int32_t>(tokens));
  return tokens;
}

Tokens OnCpu(const Values& logits, int64_t vocab, const std::vector<SamplingRow>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const StridedMatrix in(count, static_cast<int64_t>(logits.size()) / count, 1, logits);
  const OwnedTensor out = cpu::NewMatrix(1, count, DType::kI32);
  ThreadPool pool(1);
  cpu::Sample(pool, in.view(), vocab, rows, {}, out);
  const int32_t* tokens = cpu::I32Row(out, 0);
  return {tokens, tokens + count};
}

int32_t SampleOne(const Values& logits, const SamplingParameters& p) {
  return OnDevice(logits, static_cast<int64_t>(logits.size()), {{p, 0}})[0];
}

Values Repeated(const Values& row, size_t times) {
  Values values;
  for (size_t i = 0; i < times; ++i) values.insert(values.end(), row.begin(), row.end());
  return values;
}

// Draws of one row with `draws` seeds, compared.
void ExpectTheCpusTokens(const Values& logits, SamplingParameters p, int draws) {
  std::vector<SamplingRow> rows;
  for (int i = 0; i < draws; ++i) {
    p.seed = static_cast<uint64_t>(i) / 10;
    rows.push_back({p, i % 10});
  }
  const Values values = Repeated(logits, rows.size());
  const auto vocab = static_cast<int64_t>(logits.size());
  EXPECT_EQ(OnDevice(values, vocab, rows), OnCpu(values, vocab, rows))
      << "temperature " << p.temperature << " top_k " << p.top_k << " top_p " << p.top_p
      << " min_p " << p.min_p << " vocabulary " << vocab;
}

// Logits whose softmax is `probabilities`.
Values Logits(const std::vector<double>& probabilities) {
  Values logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

Values NormalValues(int64_t n, uint32_t seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  Values values(static_cast<size_t>(n));
  for (float& value : values) value = normal(generator);
  return values;
}

TEST(SampleTest, GreedyTakesTheLargestAndTheFirstAmongEquals) {
  const SamplingParameters greedy = {.temperature = 0};
  EXPECT_EQ(SampleOne({1, 3, 2}, greedy), 1);
  EXPECT_EQ(SampleOne({1, 3, 3}, greedy), 1);
  EXPECT_EQ(SampleOne({-1, -0.0f, 0.0f}, greedy), 1);
  EXPECT_EQ(SampleOne({-kInfinity, -5, -kInfinity}, greedy), 1);
  Values many = RandomValues(5000, 1);
  many[3777] = many[4777] = 2;
  EXPECT_EQ(SampleOne(many, greedy), 3777);
}

TEST(SampleTest, PaddedTokensAreNeverChosen) {
  Values logits(100, 0);
  for (size_t i = 90; i < 100; ++i) logits[i] = 50;
  std::vector<SamplingRow> rows = {{{.temperature = 0}, 0}};
  for (int64_t position = 0; position < 100; ++position) rows.push_back({{}, position});
  const Tokens tokens = OnDevice(Repeated(logits, rows.size()), 90, rows);
  for (int32_t token : tokens) EXPECT_LT(token, 90);
}

TEST(SampleTest, RowsWithoutADistributionGiveNoToken) {
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingParameters p = {.temperature = temperature};
    EXPECT_EQ(SampleOne({kNaN, kNaN}, p), -1);
    EXPECT_EQ(SampleOne({-kInfinity, -kInfinity}, p), -1);
    EXPECT_EQ(SampleOne({kNaN, 1, kNaN}, p), -1);
    EXPECT_EQ(SampleOne({0, kInfinity, 5}, p), -1);
  }
}

TEST(SampleTest, OddLogitsAreSurvived) {
  EXPECT_EQ(SampleOne({0, 7, -kInfinity}, {.temperature = 1e-40f}), 1);
  EXPECT_EQ(SampleOne({-kInfinity, 7, -kInfinity}, {.typical_p = 0.5f}), 1);
  EXPECT_EQ(SampleOne({4}, {.top_k = 3, .top_p = 0.1f, .min_p = 1}), 0);
}

TEST(SampleTest, SmallRowsDrawAsOnTheCpu) {
  const Values four = Logits({0.1, 0.4, 0.2, 0.3});
  ExpectTheCpusTokens(Logits({0.5, 0.05, 0.25, 0.125, 0.07, 0.005}), {}, 80);
  for (const float temperature : {2.0f, 1e30f}) {
    ExpectTheCpusTokens(four, {.temperature = temperature}, 20);
  }
  for (const int32_t k : {1, 2, 9}) ExpectTheCpusTokens(four, {.top_k = k}, 20);
  for (const float p : {0.65f, 0.75f, 1e-6f}) ExpectTheCpusTokens(four, {.top_p = p}, 20);
  for (const float p : {0.45f, 1.0f}) ExpectTheCpusTokens(four, {.min_p = p}, 20);
  ExpectTheCpusTokens(four, {.top_k = 3, .top_p = 0.57f, .min_p = 0.6f}, 20);
  for (const float p : {0.2f, 0.6f, 0.95f}) {
    ExpectTheCpusTokens(four, {.min_p = 0.5f, .typical_p = p}, 20);
    ExpectTheCpusTokens(four, {.top_k = 2, .typical_p = p}, 20);
  }
}

TEST(SampleTest, EqualLogitsKeepTheOrderOfTheirIds) {
  ExpectTheCpusTokens({0, 0, 0, 0}, {.top_k = 2}, 20);
  ExpectTheCpusTokens({-0.0f, 0, -0.0f, 0}, {.top_k = 2}, 20);
  ExpectTheCpusTokens(Values(1000, 0.5f), {.top_p = 0.1f}, 20);
  Values rounded = NormalValues(500, 2, 2);
  for (float& x : rounded) x = std::round(x);
  for (const int32_t k : {0, 100}) ExpectTheCpusTokens(rounded, {.top_k = k, .top_p = 0.7f}, 20);
  // More equals than a search can put aside.
  ExpectTheCpusTokens(Values(6000, -1), {.top_k = 5500}, 2);
}

TEST(SampleTest, RowsDrawAsOnTheCpu) {
  constexpr int64_t kVocab = 2100;
  constexpr int64_t kColumns = 2111;
  std::mt19937 random(11);
  std::vector<SamplingRow> rows;
  for (const float temperature : {0.0f, 1.0f, 20.0f}) {
    for (const int32_t top_k : {0, 1, 40, 1500}) {
      for (const float top_p : {1.0f, 0.9f, 0.2f}) {
        for (const float min_p : {0.0f, 0.05f}) {
          for (const float typical_p : {1.0f, 0.4f}) {
            rows.push_back({{temperature, top_k, top_p, min_p, typical_p, random()},
                            static_cast<int64_t>(rows.size() * 3)});
          }
        }
      }
    }
  }
  const Values logits = NormalValues(static_cast<int64_t>(rows.size()) * kColumns, 12, 3);
  EXPECT_EQ(OnDevice(logits, kVocab, rows), OnCpu(logits, kVocab, rows));
}

// Rows that fit in shared memory and rows that do not; places near the top and far from it.
TEST(SampleTest, LargeVocabulariesDrawAsOnTheCpu) {
  for (const int64_t vocab : {50'264, 70'001}) {
    const Values logits = NormalValues(vocab, 5, 4);
    ExpectTheCpusTokens(logits, {.top_p = 0.95f}, 1);
    ExpectTheCpusTokens(logits, {.temperature = 50}, 1);
    ExpectTheCpusTokens(logits, {.temperature = 0.7f, .top_k = 30'000}, 1);
  }
}

TEST(SampleTest, NoThreadOrderChangesAToken) {
  const Values logits = NormalValues(5000, 6, 3);
  for (const auto order :
       {cuda_on_cpu::ThreadOrder::kReverse, cuda_on_cpu::ThreadOrder::kShuffled}) {
    cuda_on_cpu::SetThreadOrder(order, 1);
    ExpectTheCpusTokens(logits, {.top_k = 300, .top_p = 0.9f}, 5);
    ExpectTheCpusTokens(logits, {.temperature = 30}, 5);
  }
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward);
}

TEST(SampleTest, AdjustmentsChangeTheChoiceAndAreUndone) {
  Device device;
  const Values before = {1, 3, 2, -1, 3, 2};
  const OwnedTensor in = NewMatrix(device, 2, 3, DType::kF32);
  const OwnedTensor parameters = NewMatrix(device, 2, kSamplingColumns, DType::kI32);
  const OwnedTensor offsets = NewMatrix(device, 1, 3, DType::kI32);
  const OwnedTensor entries = NewMatrix(device, 3, kAdjustmentColumns, DType::kI32);
  const OwnedTensor out = NewMatrix(device, 1, 2, DType::kI32);
  const std::vector<SamplingRow> rows(2, SamplingRow{.parameters = {.temperature = 0}});
  // Row 0: 3 / 2 = 1.5 < 2. Row 1: -1 * 2 + 9 = 7, and 3 - 1.
  const std::vector<LogitAdjustment> adjustments = {{1, 2, 0}, {0, 2, 9}, {1, 1, -1}};
  CopyIn(device, before, in);
  CopyIn(device, AsIndices(rows), parameters);
  CopyIn(device, Tokens{0, 1, 3}, offsets);
  CopyIn(device, AsIndices(adjustments), entries);
  Sample(device, in, 3, parameters, {offsets, entries}, out);
  Tokens tokens(2);
  CopyOut(device, out, std::span<int32_t>(tokens));
  EXPECT_EQ(tokens, (Tokens{2, 0}));
  Values after(6);
  CopyOut(device, in, std::span<float>(after));
  EXPECT_EQ(after, before);
}

// Weights are f32, so their sum has a relative error of some u: 4 u (1 + |log p|) leaves room.
TEST(LogProbabilitiesTest, AreThoseOfTheCpuWithinTheBound) {
  constexpr int64_t kRows = 3;
  for (const int64_t vocab : {5, 1003}) {
    Device device;
    Values logits = NormalValues(kRows * vocab, 3, 3);
    const OwnedTensor in = NewMatrix(device, kRows, vocab, DType::kF32);
    const OwnedTensor tokens = NewMatrix(device, 1, kRows, DType::kI32);
    const OwnedTensor likeliest = NewMatrix(device, kRows, 5, DType::kI32);
    const OwnedTensor out = NewMatrix(device, kRows, 6, DType::kF32);
    CopyIn(device, logits, in);
    CopyIn(device, Tokens{4, -1, 0}, tokens);
    LogProbabilities(device, in, vocab, tokens, likeliest, out);
    Tokens ids(kRows * 5);
    Values values(kRows * 6);
    CopyOut(device, likeliest, std::span<int32_t>(ids));
    CopyOut(device, out, std::span<float>(values));

    ThreadPool pool(1);
    const StridedMatrix host(kRows, vocab, 1, logits);
    const OwnedTensor host_tokens = cpu::NewMatrix(1, kRows, DType::kI32);
    const OwnedTensor host_ids = cpu::NewMatrix(kRows, 5, DType::kI32);
    const OwnedTensor host_out = cpu::NewMatrix(kRows, 6, DType::kF32);
    for (int i = 0; i < 3; ++i) cpu::I32Row(host_tokens, 0)[i] = std::array{4, -1, 0}[i];
    cpu::LogProbabilities(pool, host.view(), vocab, host_tokens, host_ids, host_out);
    for (int64_t i = 0; i < kRows * 5; ++i) {
      EXPECT_EQ(ids[static_cast<size_t>(i)], cpu::I32Row(host_ids, i / 5)[i % 5]);
    }
    for (int64_t i = 0; i < kRows * 6; ++i) {
      const float expected = cpu::F32Row(host_out, i / 6)[i % 6];
      EXPECT_NEAR(values[static_cast<size_t>(i)], expected,
                  4 * std::ldexp(1.0, -24) * (1 + std::abs(expected)));
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::sample_test
