#include "kernels/cuda/rows/mean_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::mean_pool_test {
namespace {

using Values = std::vector<float>;
using Mask = std::vector<int32_t>;

struct Problem {
  int64_t sequences, tokens, d;
  Values x;
  Mask mask;
};

Problem MakeProblem(int64_t sequences, int64_t tokens, int64_t d) {
  Problem p = {sequences, tokens, d, RandomValues(sequences * tokens * d, 1), {}};
  std::mt19937 generator(2);
  for (int64_t i = 0; i < sequences * tokens; ++i) {
    p.mask.push_back(generator() % 3 == 0 ? 0 : 1);
  }
  return p;
}

Values Pool(const Problem& p, DType dtype, int64_t gap) {
  Device device;
  const DeviceMatrix x(device, {p.sequences * p.tokens, p.d, DType::kF32, gap}, p.x);
  const OwnedTensor mask = NewMatrix(device, p.sequences, p.tokens, DType::kI32);
  CopyIn(device, p.mask, mask);
  const DeviceMatrix y(device, {p.sequences, p.d, dtype, gap});
  MeanPool(device, x.view(), mask, y.view());
  EXPECT_TRUE(y.SurroundingsAreZero());
  return y.values();
}

// Within g(T) of the mean magnitude, and the rounding to the type of y.
void ExpectMeans(const Problem& p, DType dtype, const Values& y) {
  for (int64_t i = 0; i < p.sequences * p.d; ++i) {
    double sum = 0, size = 0, count = 0;
    for (int64_t t = 0; t < p.tokens; ++t) {
      const int64_t row = i / p.d * p.tokens + t;
      if (p.mask[static_cast<size_t>(row)] == 0) continue;
      const double x = p.x[static_cast<size_t>(row * p.d + i % p.d)];
      sum += x;
      size += std::abs(x);
      count += 1;
    }
    const double mean = count == 0 ? 0 : sum / count;
    const double error = count == 0 ? 0 : Gamma(p.tokens + 1) * size / count;
    const double last = dtype == DType::kBF16 ? 0x1p-8 : 0;
    ASSERT_NEAR(y[static_cast<size_t>(i)], mean, error + last * (std::abs(mean) + error))
        << "element " << i;
  }
}

class MeanPoolTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, MeanPoolTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(MeanPoolTest, IsTheMeanOfTheUnmaskedRows) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 130}) {
    for (const int64_t d : {1, 31, 32, 33, 100}) {
      for (const int64_t gap : {0, 3}) {
        const Problem p = MakeProblem(3, tokens, d);
        ExpectMeans(p, GetParam(), Pool(p, GetParam(), gap));
      }
    }
  }
}

TEST_P(MeanPoolTest, IsZeroWithoutUnmaskedRows) {
  Problem p = MakeProblem(2, 20, 5);
  for (size_t t = 0; t < 20; ++t) p.mask[t] = 0;
  const Values y = Pool(p, GetParam(), 0);
  EXPECT_EQ(Values(y.begin(), y.begin() + 5), Values(5, 0));
  ExpectMeans(p, GetParam(), y);
}

TEST_P(MeanPoolTest, DoesNotReadMaskedRows) {
  Problem p = MakeProblem(1, 40, 3);
  const Values expected = Pool(p, GetParam(), 0);
  for (size_t i = 0; i < p.x.size(); ++i) {
    if (p.mask[i / 3] == 0) p.x[i] = std::nanf("");
  }
  EXPECT_EQ(Pool(p, GetParam(), 0), expected);
}

TEST_P(MeanPoolTest, DoesNotDependOnTheOrderOfThreads) {
  const Problem p = MakeProblem(2, 100, 40);
  const Values expected = Pool(p, GetParam(), 0);
  cuda_on_cpu::InEveryOrder([&] { EXPECT_EQ(Pool(p, GetParam(), 0), expected); });
}

}  // namespace
}  // namespace hippodrome::cuda::mean_pool_test
