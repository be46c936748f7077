#include "kernels/cpu/gemm/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/kernels/cpu/gemm/linear_kernels.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/reference/linear.h"

namespace hippodrome::cpu::linear_test {
namespace {

using Values = std::vector<float>;

// A row of `cols` of each of the values as operands of a product with weights of `dtype`.
std::vector<double> Rounded(const Values& values, int64_t cols, DType dtype,
                            void (*round)(std::span<double>, DType)) {
  std::vector<double> rounded(values.begin(), values.end());
  if (dtype == DType::kBF16) {
    std::ranges::transform(values, rounded.begin(), [](float x) { return ToFloat(ToBF16(x)); });
  }
  if (!IsQuantized(dtype)) return rounded;
  for (size_t row = 0; row < rounded.size(); row += static_cast<size_t>(cols)) {
    reference::ForEachGroup(std::span(rounded).subspan(row, static_cast<size_t>(cols)), dtype,
                            round);
  }
  return rounded;
}

std::unique_ptr<PackedWeights> Pack(ThreadPool& pool, const Values& w, int64_t out, int64_t in,
                                    DType dtype) {
  const HostMatrix host = {w.data(), DType::kF32, out, in};
  return PackLinear(pool, std::span(&host, 1), dtype);
}

struct Problem {
  int64_t rows, in, out;
  Values x, w;
};

Problem MakeProblem(int64_t rows, int64_t in, int64_t out) {
  return {rows, in, out, RandomValues(rows * in, 1), RandomValues(out * in, 2)};
}

Values Multiply(ThreadPool& pool, const Problem& p, DType dtype, DotKernel kernel, int64_t gap = 0,
                const Epilogue& epilogue = {}, const LaterReads& later = {}) {
  const StridedMatrix x(p.rows, p.in, gap, p.x);
  const StridedMatrix y(p.rows, p.out, gap);
  Linear(pool, x.view(), *Pack(pool, p.w, p.out, p.in, dtype), epilogue, y.view(), kernel, later);
  return y.values();
}

// The bounds of the contract: g(in + 2) |x| |W|^T, and g(G + 2) sum_g |S_g| of quantised weights,
// whose sums of a group are exact. The dot product of processors may also flush what is subnormal,
// far below it.
void ExpectProduct(const Problem& p, DType dtype, const Values& y) {
  const std::vector<double> x = Rounded(p.x, p.in, dtype, reference::RoundActivations);
  const std::vector<double> w = Rounded(p.w, p.in, dtype, reference::RoundWeights);
  const int64_t exact = IsQuantized(dtype) ? QuantizedGroup(dtype) : 1;
  const int64_t sums = (p.in + exact - 1) / exact;
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.out; ++c) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t begin = 0; begin < p.in; begin += exact) {
        double group = 0;
        for (int64_t k = begin; k < std::min(begin + exact, p.in); ++k) {
          group += x[static_cast<size_t>(r * p.in + k)] * w[static_cast<size_t>(c * p.in + k)];
        }
        sum += group;
        magnitude += std::abs(group);
      }
      ASSERT_NEAR(y[static_cast<size_t>(r * p.out + c)], sum, Gamma(sums + 2) * magnitude + 1e-30)
          << "row " << r << " column " << c << " of " << p.rows << "x" << p.in << "x" << p.out;
    }
  }
}

using LinearTest = LinearKernelTest;

INSTANTIATE_TEST_SUITE_P(Kernels, LinearTest, AllLinearKernels());
INSTANTIATE_TEST_SUITE_P(Quantized, LinearTest, QuantizedKernels());

// Groups of zeros, of one value that outweighs the others, of values too small for a scale, and of
// all signs of the largest integers.
Problem ExtremeProblem() {
  Problem p = MakeProblem(9, 3 * kInt8Group + 5, 70);
  const auto row = [&](Values& values, int64_t r) { return values.begin() + r * p.in; };
  std::fill_n(row(p.x, 1), p.in, 0.0f);
  std::fill_n(row(p.x, 2), p.in, 1e-33f);
  p.x[static_cast<size_t>(3 * p.in + 7)] = 1e6f;
  std::fill_n(row(p.w, 1), p.in, 0.0f);
  std::fill_n(row(p.w, 2), p.in, -1e-33f);
  p.w[static_cast<size_t>(3 * p.in + 9)] = -1e6f;
  for (int64_t k = 0; k < p.in; ++k) {
    row(p.x, 4)[k] = row(p.w, 4)[k] = -2.0f;
    row(p.x, 5)[k] = row(p.w, 5)[k] = 2.0f;
  }
  return p;
}

TEST_P(LinearTest, MatchesDoubleLoopsOnExtremeValues) {
  ThreadPool pool(2);
  const Problem p = ExtremeProblem();
  ExpectProduct(p, dtype(), Multiply(pool, p, dtype(), kernel()));
}

// Where there are fused multiply-adds.
TEST(QuantizedLinearTest, KernelsGiveTheSameBits) {
  if (!HaveInt8Dot()) GTEST_SKIP() << "no dot product";
  ThreadPool pool(2);
  for (const DType dtype : {DType::kI8, DType::kI4}) {
    const bool amx = dtype == DType::kI8 && HaveInt8Amx();
    for (const Problem& p :
         {ExtremeProblem(), MakeProblem(33, 300, 70), MakeProblem(70, 1500, 130)}) {
      const Values y = Multiply(pool, p, dtype, DotKernel::kPlain);
      EXPECT_EQ(y, Multiply(pool, p, dtype, DotKernel::kDot));
      if (amx) {
        EXPECT_EQ(y, Multiply(pool, p, dtype, DotKernel::kAmx));
      }
    }
  }
}

// Group `index` of a row of `cols` values.
std::span<const float> Group(const Values& values, int64_t row, int64_t cols, int64_t index,
                             DType dtype) {
  const int64_t begin = index * QuantizedGroup(dtype);
  return std::span(values).subspan(
      static_cast<size_t>(row * cols + begin),
      static_cast<size_t>(std::min(QuantizedGroup(dtype), cols - begin)));
}

// The product at one place in double, and how far steps of the scales may lead from it: a value
// errs by at most half of its group's scale in x; in W by 0.6 of it with 8 bits, what the scale was
// rounded down by included, and by 1.3 with 4, where 8.25 may become 7.
struct Bounded {
  double product = 0;
  double bound = 0;
};

Bounded BoundByScales(const Problem& p, int64_t row, int64_t column, DType dtype) {
  Bounded sum;
  for (int64_t g = 0; g < QuantizedGroups(p.in, dtype); ++g) {
    const auto x = Group(p.x, row, p.in, g, dtype);
    const auto w = Group(p.w, column, p.in, g, dtype);
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::abs(value));
    std::vector<int8_t> integers(w.size());
    const double w_scale = ToFloat(QuantizeGroup(dtype, w, integers.data()));
    const double x_step = 0.501 * double{ActivationScale(largest).scale};
    const double w_step = (dtype == DType::kI8 ? 0.6 : 1.3) * std::abs(w_scale);
    for (size_t k = 0; k < x.size(); ++k) {
      sum.product += double{x[k]} * w[k];
      sum.bound += x_step * std::abs(w[k]) + w_step * std::abs(x[k]) + x_step * w_step;
    }
  }
  return sum;
}

TEST(QuantizedLinearTest, ErrsByStepsOfTheScales) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(5, 3 * kInt8Group + 5, 70);
  for (const DType dtype : {DType::kI8, DType::kI4}) {
    const Values y = Multiply(pool, p, dtype, DotKernel::kBest);
    for (int64_t i = 0; i < p.rows * p.out; ++i) {
      const Bounded expected = BoundByScales(p, i / p.out, i % p.out, dtype);
      ASSERT_NEAR(y[static_cast<size_t>(i)], expected.product, expected.bound) << i;
    }
  }
}

TEST_P(LinearTest, MatchesDoubleLoops) {
  ThreadPool pool(2);
  for (int64_t rows : {1, 2, 5, 7, 31}) {
    for (auto [in, out] : {std::pair{1, 1}, {2, 3}, {7, 64}, {33, 65}, {64, 129}, {129, 200}}) {
      const Problem p = MakeProblem(rows, in, out);
      ExpectProduct(p, dtype(), Multiply(pool, p, dtype(), kernel()));
    }
  }
}

TEST_P(LinearTest, MatchesDoubleLoopsBeyondOneSlice) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(13, 4099, 70);
  ExpectProduct(p, dtype(), Multiply(pool, p, dtype(), kernel()));
}

TEST_P(LinearTest, MatchesDoubleLoopsBeyondOneBlockOfRows) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(401, 20, 66);
  ExpectProduct(p, dtype(), Multiply(pool, p, dtype(), kernel()));
}

TEST_P(LinearTest, AcceptsStridedMisalignedRows) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(9, 37, 75);
  for (int64_t gap : {1, 3, 16}) {
    EXPECT_EQ(Multiply(pool, p, dtype(), kernel(), gap), Multiply(pool, p, dtype(), kernel()));
  }
}

TEST_P(LinearTest, RowsAreIndependentBitForBit) {
  ThreadPool one(1);
  ThreadPool three(3);
  constexpr int64_t kMost = 70;
  const Problem all = MakeProblem(kMost, 1500, 130);
  const Values expected = Multiply(one, all, dtype(), kernel());
  for (int64_t rows = 1; rows <= kMost; ++rows) {
    Problem some = all;
    some.rows = rows;
    some.x.erase(some.x.begin(), some.x.begin() + (kMost - rows) * all.in);  // the last rows
    const Values y = Multiply(rows % 2 == 0 ? one : three, some, dtype(), kernel());
    ASSERT_EQ(
        std::memcmp(y.data(), expected.data() + (kMost - rows) * all.out, y.size() * sizeof(float)),
        0)
        << rows << " rows";
  }
}

TEST_P(LinearTest, RepeatsBitForBitOnManyThreads) {
  ThreadPool one(1);
  ThreadPool three(3);
  const Problem p = MakeProblem(300, 200, 300);
  EXPECT_EQ(Multiply(one, p, dtype(), kernel()), Multiply(three, p, dtype(), kernel()));
}

// Not even where nothing is mapped any more.
TEST_P(LinearTest, LaterReadsChangeNothing) {
  ThreadPool pool(3);
  const Problem p = MakeProblem(70, 700, 130);
  LaterReads later{.columns = 50};
  for (uintptr_t row = 1; row < 20; ++row) {
    later.rows.push_back({reinterpret_cast<const char*>(row << 12), 64});
  }
  EXPECT_EQ(Multiply(pool, p, dtype(), kernel(), 0, {}, later),
            Multiply(pool, p, dtype(), kernel()));
}

TEST_P(LinearTest, NaNStaysInItsRow) {
  ThreadPool pool(2);
  Problem p = MakeProblem(8, 40, 70);
  p.x[3 * 40 + 5] = std::nanf("");
  const Values y = Multiply(pool, p, dtype(), kernel());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 70 == 3);
}

// What a tile does is tested with the epilogue: here its operands must be those of the tile's rows
// and columns.
TEST_P(LinearTest, GatesInPlaceAndAddsTheResidual) {
  ThreadPool pool(3);
  const Problem p = MakeProblem(70, 33, 130);
  const Values product = Multiply(pool, p, dtype(), kernel());
  const Values bias = RandomValues(p.out, 3);
  const Values gate = RandomValues(p.rows * p.out, 4);
  const Values residual = RandomValues(p.rows * p.out, 5);
  const StridedMatrix x(p.rows, p.in, 1, p.x);
  const StridedMatrix bias_row(1, p.out, 0, bias);
  const StridedMatrix residual_rows(p.rows, p.out, 5, residual);
  const StridedMatrix y(p.rows, p.out, 3, gate);
  const Epilogue epilogue = {
      .bias = bias_row.view(), .gate = y.view(), .residual = residual_rows.view()};
  Linear(pool, x.view(), *Pack(pool, p.w, p.out, p.in, dtype()), epilogue, y.view(), kernel());
  const Values values = y.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const double sum = double{product[i]} + bias[i % static_cast<size_t>(p.out)];
    const double magnitude = std::abs(sum * gate[i]) + std::abs(residual[i]);
    ASSERT_NEAR(values[i], sum * gate[i] + residual[i], Gamma(3) * magnitude) << i;
  }
}

}  // namespace
}  // namespace hippodrome::cpu::linear_test
