// Convolutions and their gradients on a device and in double precision.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_CONV_CONVOLUTION_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_CONV_CONVOLUTION_PROBLEM_H_

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/conv/convolution.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {

using Values = std::vector<float>;

struct ConvolutionCase {
  int64_t tokens = 1;
  int64_t columns = 1;
  int64_t heads = 1;
  int64_t count = 1;  // points of each kernel
  int64_t sequences = 1;
  Direction direction = Direction::kForward;
  DType dtype = DType::kF32;  // of u
  int64_t gap = 0;
  bool add = false;
};

inline testing::Message Describe(const ConvolutionCase& c) {
  return testing::Message() << "T " << c.tokens << " columns " << c.columns << " H " << c.heads
                            << " count " << c.count << " B " << c.sequences << " gap " << c.gap
                            << (c.direction == Direction::kForward ? " forward" : " backward")
                            << (c.dtype == DType::kBF16 ? " bf16" : "") << (c.add ? " add" : "");
}

struct SequenceResults {
  Values y, du;
  std::vector<double> dk;  // [heads, count]

  bool operator==(const SequenceResults&) const = default;
};

// A sum of products, and measures of its error: sum |a| |b| of the terms, and |a|_2 |b|_2 of the
// whole column.
struct ConvolutionExpectation {
  double value = 0;
  double terms = 0;
  double norms = 0;
};

class ConvolutionProblem {
 public:
  explicit ConvolutionProblem(const ConvolutionCase& c)
      : c_(c),
        kernels_(RandomValues(c.heads * c.count, 1)),
        u_(RandomValues(c.sequences * c.tokens * c.columns, 2)),
        dy_(RandomValues(c.sequences * c.tokens * c.columns, 3)) {
    for (float& x : u_) x = Stored(c.dtype, x);
  }

  // The gradients of two calls are summed where the case says add; y and du are those of one call
  // on top of ones.
  SequenceResults Run(ConvolutionMethod method) const {
    Device device;
    const int64_t rows = c_.sequences * c_.tokens;
    const MatrixShape f32 = {rows, c_.columns, DType::kF32, c_.gap};
    const ConvolutionKernels kernels(device, kernels_, c_.heads);
    const DeviceMatrix u(device, {rows, c_.columns, c_.dtype, c_.gap}, u_);
    const DeviceMatrix dy(device, f32, dy_);
    const DeviceMatrix y(device, f32);
    const DeviceMatrix du(device, f32, Values(u_.size(), 1));
    KernelGradientSums sums(device, c_.heads, c_.count);
    const ConvolutionCall call = {kernels, u.view(), c_.sequences, c_.direction};
    if (c_.add) {
      ConvolveBackward(device, call, {.dy = dy.view(), .y = {}, .du = {}}, sums, method);
    }
    ConvolveBackward(device, call, {.dy = dy.view(), .y = y.view(), .du = {du.view(), c_.add}},
                     sums, method);
    EXPECT_TRUE(y.SurroundingsAreZero() && du.SurroundingsAreZero());
    const DeviceMatrix again(device, f32);
    Convolve(device, call, {again.view()}, method);
    EXPECT_EQ(again.values(), y.values());
    const SequenceResults results = {y.values(), du.values(), sums.Take(device)};
    for (const double x : sums.Take(device)) EXPECT_EQ(x, 0);
    return results;
  }

  ConvolutionExpectation Y(int64_t sequence, int64_t t, int64_t column) const {
    ConvolutionExpectation e;
    for (int64_t l = 0; l < c_.count; ++l) Add(K(column, l), At(u_, sequence, t - l, column), e);
    e.norms = KernelNorm(column) * Norm(u_, sequence, column);
    return e;
  }
  ConvolutionExpectation Du(int64_t sequence, int64_t t, int64_t column) const {
    ConvolutionExpectation e;
    for (int64_t l = 0; l < c_.count; ++l) Add(K(column, l), At(dy_, sequence, t + l, column), e);
    e.norms = KernelNorm(column) * Norm(dy_, sequence, column);
    return e;
  }
  ConvolutionExpectation Dk(int64_t head, int64_t lag) const {
    ConvolutionExpectation e;
    const int64_t head_columns = c_.columns / c_.heads;
    for (int64_t c = head * head_columns; c < (head + 1) * head_columns; ++c) {
      for (int64_t b = 0; b < c_.sequences; ++b) {
        for (int64_t t = lag; t < c_.tokens; ++t) Add(At(dy_, b, t, c), At(u_, b, t - lag, c), e);
        e.norms += Norm(dy_, b, c) * Norm(u_, b, c);
      }
    }
    return e;
  }

  // Every `stride`-th number, within error(expectation).
  template <typename Error>
  void Expect(const SequenceResults& results, const Error& error, int64_t stride = 1) const {
    const double before = c_.add ? 1 : 0;
    const double times = c_.add ? 2 : 1;
    for (int64_t i = 0; i < std::ssize(u_); i += stride) {
      const int64_t row = i / c_.columns;
      const int64_t token = row % c_.tokens;
      const int64_t t = c_.direction == Direction::kForward ? token : c_.tokens - 1 - token;
      const ConvolutionExpectation y = Y(row / c_.tokens, t, i % c_.columns);
      const ConvolutionExpectation du = Du(row / c_.tokens, t, i % c_.columns);
      const auto at = static_cast<size_t>(i);
      ASSERT_NEAR(results.y[at], y.value, error(y)) << "y " << i;
      ASSERT_NEAR(results.du[at], du.value + before, error(du) + before * 0x1p-20) << "du " << i;
    }
    for (int64_t i = 0; i < std::ssize(kernels_); i += stride) {
      const ConvolutionExpectation dk = Dk(i / c_.count, i % c_.count);
      const double expected = i % c_.count < c_.tokens ? times * dk.value : 0;
      ASSERT_NEAR(results.dk[static_cast<size_t>(i)], expected, times * error(dk)) << "dk " << i;
    }
  }

 private:
  // Times run from the last token to the first in a convolution that is backward.
  double At(const Values& x, int64_t sequence, int64_t t, int64_t column) const {
    if (t < 0 || t >= c_.tokens) return 0;
    const int64_t token = c_.direction == Direction::kForward ? t : c_.tokens - 1 - t;
    return x[static_cast<size_t>((sequence * c_.tokens + token) * c_.columns + column)];
  }
  double Norm(const Values& x, int64_t sequence, int64_t column) const {
    double sum = 0;
    for (int64_t t = 0; t < c_.tokens; ++t) sum += std::pow(At(x, sequence, t, column), 2);
    return std::sqrt(sum);
  }
  double K(int64_t column, int64_t lag) const {
    const int64_t head = column / (c_.columns / c_.heads);
    return kernels_[static_cast<size_t>(head * c_.count + lag)];
  }

  double KernelNorm(int64_t column) const {
    double sum = 0;
    for (int64_t l = 0; l < c_.count; ++l) sum += std::pow(K(column, l), 2);
    return std::sqrt(sum);
  }
  static void Add(double a, double b, ConvolutionExpectation& e) {
    e.value += a * b;
    e.terms += std::abs(a * b);
  }

  const ConvolutionCase c_;
  Values kernels_, u_, dy_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_CONV_CONVOLUTION_PROBLEM_H_
