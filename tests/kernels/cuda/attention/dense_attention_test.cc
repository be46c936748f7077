#include "kernels/cuda/attention/dense_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/attention/attention_problem.h"

namespace hippodrome::cuda::dense_attention_test {
namespace {

using Mask = std::vector<int32_t>;

// About two thirds of the keys are visible.
Mask RandomMask(int64_t size) {
  Mask mask;
  std::mt19937 generator(5);
  for (int64_t i = 0; i < size; ++i) mask.push_back(generator() % 3 == 0 ? 0 : 1);
  return mask;
}

Values Attend(const AttentionCase& c, const Values& qkv, const Mask& mask) {
  Device device;
  const int64_t rows = c.sequences * c.tokens;
  const DeviceMatrix in(device, {rows, 3 * c.width(), c.dtype, c.gap}, qkv);
  const DeviceMatrix o(device, {rows, c.width(), c.dtype, c.gap});
  const OwnedTensor visible = NewMatrix(device, c.sequences, c.tokens, DType::kI32);
  CopyIn(device, mask, visible);
  BidirectionalAttention(device, {c.shape, in.view(), visible, o.view()});
  EXPECT_TRUE(o.SurroundingsAreZero());
  return o.values();
}

// One head of one query, in double; zero without visible keys.
std::vector<double> Expected(const AttentionCase& c, const Values& qkv, const Mask& mask,
                             int64_t row, int64_t head) {
  const int64_t n = c.shape.head_dim;
  const auto part = [&](int64_t at, int64_t which) {
    return &qkv[static_cast<size_t>(at * 3 * c.width() + which * c.width() + head * n)];
  };
  std::vector<double> o(static_cast<size_t>(n));
  double max = -INFINITY, total = 0;
  std::vector<double> scores(static_cast<size_t>(c.tokens), -INFINITY);
  for (int64_t s = 0; s < c.tokens; ++s) {
    const int64_t key = row / c.tokens * c.tokens + s;
    if (mask[static_cast<size_t>(key)] == 0) continue;
    double& score = scores[static_cast<size_t>(s)];
    score = std::inner_product(part(row, 0), part(row, 0) + n, part(key, 1), 0.0) /
            std::sqrt(static_cast<double>(n));
    max = std::max(max, score);
  }
  for (int64_t s = 0; s < c.tokens; ++s) {
    if (scores[static_cast<size_t>(s)] == -INFINITY) continue;
    const double p = std::exp(scores[static_cast<size_t>(s)] - max);
    total += p;
    const float* v = part(row / c.tokens * c.tokens + s, 2);
    for (int64_t j = 0; j < n; ++j) o[static_cast<size_t>(j)] += p * v[j];
  }
  for (double& x : o) x = total == 0 ? 0 : x / total;
  return o;
}

// The bound of attention_problem.h, whose reference knows all norms.
void ExpectAttention(const AttentionCase& c, const Mask& mask, float scale = 1) {
  const Values qkv = RandomProjections(c, 1, scale);
  const Values o = Attend(c, qkv, mask);
  const double tolerance = AttentionReference(c, qkv).tolerance();
  for (int64_t row = 0; row < c.sequences * c.tokens; ++row) {
    for (int64_t head = 0; head < c.shape.heads; ++head) {
      const std::vector<double> expected = Expected(c, qkv, mask, row, head);
      for (size_t j = 0; j < expected.size(); ++j) {
        const size_t i = static_cast<size_t>(row * c.width() + head * c.shape.head_dim) + j;
        ASSERT_NEAR(o[i], expected[j], tolerance) << "row " << row << " column " << j;
      }
    }
  }
}

constexpr DType kBF16 = DType::kBF16;
constexpr DType kF32 = DType::kF32;

AttentionCase MakeCase(DType dtype, AttentionShape shape, int64_t sequences, int64_t tokens,
                       int64_t gap = 0) {
  return {dtype, shape, 64, sequences, tokens, gap};
}

class BidirectionalAttentionTest : public testing::TestWithParam<AttentionCase> {};

INSTANTIATE_TEST_SUITE_P(
    Tiles, BidirectionalAttentionTest,
    testing::Values(MakeCase(kBF16, {1, 64, 0}, 1, 1), MakeCase(kBF16, {2, 64, 0}, 2, 5),
                    MakeCase(kBF16, {1, 64, 0}, 1, 64), MakeCase(kBF16, {2, 64, 0}, 1, 65, 8),
                    MakeCase(kBF16, {1, 64, 0}, 2, 130), MakeCase(kBF16, {1, 80, 0}, 1, 129),
                    MakeCase(kBF16, {3, 16, 0}, 3, 70), MakeCase(kBF16, {1, 32, 0}, 1, 67)));

// Other shapes, rows that are not aligned, and f32.
INSTANTIATE_TEST_SUITE_P(
    Rows, BidirectionalAttentionTest,
    testing::Values(MakeCase(kBF16, {2, 7, 0}, 2, 20), MakeCase(kBF16, {1, 64, 0}, 1, 20, 3),
                    MakeCase(kBF16, {1, 256, 0}, 1, 9), MakeCase(kF32, {1, 1, 0}, 1, 1),
                    MakeCase(kF32, {2, 4, 0}, 2, 70), MakeCase(kF32, {3, 7, 0}, 1, 33, 1),
                    MakeCase(kF32, {2, 64, 0}, 2, 65), MakeCase(kF32, {1, 128, 0}, 1, 66)));

TEST_P(BidirectionalAttentionTest, MatchesTheFormula) {
  const AttentionCase& c = GetParam();
  ExpectAttention(c, Mask(static_cast<size_t>(c.sequences * c.tokens), 1));
  ExpectAttention(c, RandomMask(c.sequences * c.tokens));
}

// The keys of the first tile, of a middle one, of the last one, or of a sequence are hidden.
TEST(BidirectionalAttentionCases, SkipsHiddenTiles) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = MakeCase(dtype, {1, 64, 0}, 2, 200);
    for (const auto& [first, last] :
         {std::pair{0, 64}, {64, 128}, {128, 200}, {0, 199}, {0, 200}}) {
      Mask mask = RandomMask(c.sequences * c.tokens);
      mask[199] = 1;
      std::fill(mask.begin() + first, mask.begin() + last, 0);
      ExpectAttention(c, mask);
    }
  }
}

TEST(BidirectionalAttentionCases, LargeScoresStayFinite) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = MakeCase(dtype, {1, 64, 0}, 1, 140);
    ExpectAttention(c, RandomMask(c.tokens), 40);
  }
}

TEST(BidirectionalAttentionCases, ThreadsMayRunInAnyOrder) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = MakeCase(dtype, {1, 64, 0}, 1, 140);
    const Values qkv = RandomProjections(c, 5);
    const Mask mask = RandomMask(c.tokens);
    const Values expected = Attend(c, qkv, mask);
    cuda_on_cpu::InEveryOrder([&] { EXPECT_EQ(Attend(c, qkv, mask), expected); });
  }
}

}  // namespace
}  // namespace hippodrome::cuda::dense_attention_test
