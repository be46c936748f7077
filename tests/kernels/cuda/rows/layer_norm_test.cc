#include "kernels/cuda/rows/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::layer_norm_test {
namespace {

using Values = std::vector<float>;

constexpr double kEpsilon = 1e-5;

struct Problem {
  int64_t rows, cols;
  Values x, gamma, beta;
};

Problem MakeProblem(int64_t rows, int64_t cols, float shift = 0) {
  Problem p = {rows, cols, RandomValues(rows * cols, 1), RandomValues(cols, 2),
               RandomValues(cols, 3)};
  for (float& x : p.x) x += shift;
  return p;
}

// In place where y is f32.
Values Normalise(const Problem& p, DType dtype, int64_t gap) {
  Device device;
  const DeviceMatrix x(device, {p.rows, p.cols, DType::kF32, gap}, p.x);
  const DeviceMatrix gamma(device, {1, p.cols, DType::kF32, gap}, p.gamma);
  const DeviceMatrix beta(device, {1, p.cols, DType::kF32, gap}, p.beta);
  const DeviceMatrix rounded(device, {p.rows, p.cols, DType::kBF16, gap});
  const DeviceMatrix& y = dtype == DType::kBF16 ? rounded : x;
  LayerNorm(device, x.view(), gamma.view(), beta.view(), kEpsilon, y.view());
  EXPECT_TRUE(y.SurroundingsAreZero());
  return y.values();
}

// The mean errs by g(d) of the mean magnitude, and so does every centred value; the deviation errs
// by g(d) of itself; a few more roundings follow, and that to the type of y.
void ExpectNormalised(const Problem& p, DType dtype, const Values& y) {
  const double d = static_cast<double>(p.cols);
  const double last = dtype == DType::kBF16 ? 0x1p-8 : 0;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* x = p.x.data() + r * p.cols;
    double mean = 0, size = 0, variance = 0;
    for (int64_t c = 0; c < p.cols; ++c) mean += x[c] / d;
    for (int64_t c = 0; c < p.cols; ++c) size += std::abs(x[c]) / d;
    for (int64_t c = 0; c < p.cols; ++c) variance += (x[c] - mean) * (x[c] - mean) / d;
    const double scale = 1 / std::sqrt(variance + kEpsilon);
    for (int64_t c = 0; c < p.cols; ++c) {
      const size_t i = static_cast<size_t>(c);
      const double v = (x[c] - mean) * scale * p.gamma[i];
      const double error = std::abs(p.gamma[i]) * Gamma(p.cols + 4) * (size + std::abs(x[c])) *
                               scale * (1 + std::abs(v)) +
                           Gamma(p.cols + 8) * (std::abs(v) + std::abs(p.beta[i]));
      ASSERT_NEAR(y[static_cast<size_t>(r * p.cols + c)], v + p.beta[i],
                  error + last * (std::abs(v + p.beta[i]) + error))
          << "row " << r << " column " << c << " of " << p.cols;
    }
  }
}

class LayerNormTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, LayerNormTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(LayerNormTest, MatchesTheFormula) {
  for (int64_t cols : {1, 2, 15, 16, 17, 64, 65, 129, 512, 516, 768, 1000, 2560}) {
    for (float shift : {0.0f, 30.0f}) {
      for (int64_t gap : {0, 3, 4}) {
        const Problem p = MakeProblem(3, cols, shift);
        ExpectNormalised(p, GetParam(), Normalise(p, GetParam(), gap));
      }
    }
  }
}

TEST_P(LayerNormTest, MatchesTheFormulaOnTheWidestRows) {
  for (int64_t cols : {16381, 16384}) {
    const Problem p = MakeProblem(1, cols, 3);
    ExpectNormalised(p, GetParam(), Normalise(p, GetParam(), 0));
  }
}

TEST_P(LayerNormTest, ABlockHasSeveralRows) {
  const Problem p = MakeProblem(2 * 132 + 40, 8192);  // of the emulator's 132 x 2 blocks
  ExpectNormalised(p, GetParam(), Normalise(p, GetParam(), 4));
}

TEST_P(LayerNormTest, RowsAreIndependentBitForBit) {
  const Problem all = MakeProblem(20, 300);
  const Values expected = Normalise(all, GetParam(), 0);
  for (int64_t rows = 1; rows <= all.rows; ++rows) {
    Problem last = all;
    last.rows = rows;
    last.x.erase(last.x.begin(), last.x.begin() + (all.rows - rows) * all.cols);
    EXPECT_EQ(Normalise(last, GetParam(), 4),
              Values(expected.begin() + (all.rows - rows) * all.cols, expected.end()));
  }
}

TEST(LayerNormConstantTest, AConstantRowGivesBeta) {
  Problem p = MakeProblem(1, 37);
  p.x.assign(37, 0.5f);
  EXPECT_EQ(Normalise(p, DType::kF32, 0), p.beta);
}

TEST(LayerNormAheadTest, BlocksShareWhatTheNextProductReads) {
  Device device;
  for (const int64_t rows : {1, 3, 64}) {
    const DeviceMatrix x(device, {rows, 64});
    const DeviceMatrix parameters(device, {1, 64});
    const auto normalise = [&] {
      LayerNorm(device, x.view(), parameters.view(), parameters.view(), kEpsilon, x.view());
    };
    for (const int64_t bytes : {16, 48, 1000, 200'000}) {
      const std::shared_ptr<void> weights = AllocateZeroed(device, static_cast<size_t>(bytes));
      device.Expect(weights.get(), bytes);
      normalise();
      EXPECT_EQ(cuda_on_cpu::LastPrefetches(),
                (std::vector<cuda_on_cpu::Prefetched>{{weights.get(), bytes / 16 * 16}}));
      normalise();
      EXPECT_TRUE(cuda_on_cpu::LastPrefetches().empty());
    }
  }
}

// As much as DRAM gives in the time, and a multiprocessor asks for.
TEST(LayerNormAheadTest, LargeWeightsAreAskedForInPart) {
  Device device;
  constexpr int64_t kBytes = 30 << 20;
  const std::shared_ptr<void> weights = AllocateZeroed(device, kBytes);
  for (const int64_t rows : {1, 64}) {
    const DeviceMatrix x(device, {rows, 256});
    const DeviceMatrix parameters(device, {1, 256});
    device.Expect(weights.get(), kBytes);
    LayerNorm(device, x.view(), parameters.view(), parameters.view(), kEpsilon, x.view());
    EXPECT_EQ(cuda_on_cpu::LastPrefetches(),
              (std::vector<cuda_on_cpu::Prefetched>{{weights.get(), rows * (384 << 10)}}));
  }
}

}  // namespace
}  // namespace hippodrome::cuda::layer_norm_test
