// Long convolutions on a device and in double precision.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_CONV_LONG_CONV_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_CONV_LONG_CONV_PROBLEM_H_

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "kernels/cuda/conv/long_conv.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {

using Values = std::vector<float>;

struct LongConvCase {
  DType dtype = DType::kF32;
  int64_t tokens = 1;
  int64_t channels = 1;
  int64_t heads = 1;
  int64_t sequences = 1;
  Direction direction = Direction::kForward;
  int64_t gap = 0;   // elements before each row of u and y
  int64_t more = 0;  // tokens that the weights are made for beside those of the case
};

inline testing::Message Describe(const LongConvCase& c) {
  return testing::Message() << Name(c.dtype) << " T " << c.tokens << " d " << c.channels << " H "
                            << c.heads << " B " << c.sequences << " gap " << c.gap
                            << (c.direction == Direction::kForward ? " forward" : " backward");
}

// Random SSMs of H heads with slow and fast modes.
class RandomDiagonalSsm {
 public:
  static constexpr int64_t kModes = 5;

  RandomDiagonalSsm(int64_t channels, int64_t heads)
      : a_real_(RandomValues(heads * kModes, 1)),
        a_imag_(RandomValues(heads * kModes, 2, 40)),
        c_(RandomValues(heads * kModes * 2, 3, 8)),
        log_step_(RandomValues(heads, 4)),
        d_(RandomValues(heads, 5)),
        channels_(channels),
        heads_(heads) {
    for (float& x : a_real_) x -= 1;  // in [-2, 0)
    for (float& x : log_step_) x -= 4;
  }

  DiagonalSsmParameters parameters() const {
    return {.channels = channels_,
            .heads = heads_,
            .modes = kModes,
            .a_real = a_real_,
            .a_imag = a_imag_,
            .c = c_,
            .log_step = log_step_,
            .d = d_};
  }

  // K[0 .. length) of a head, D added to the first, by the formula of Backend::PrepareLongConv.
  std::vector<double> Kernel(int64_t head, int64_t length) const {
    std::vector<double> kernel(static_cast<size_t>(length));
    const auto h = static_cast<size_t>(head);
    const double dt = std::exp(double{log_step_[h]});
    for (size_t n = h * kModes; n < (h + 1) * kModes; ++n) {
      const std::complex<double> a = {std::min(double{a_real_[n]}, -1e-4), a_imag_[n]};
      const std::complex<double> c = {c_[2 * n], c_[2 * n + 1]};
      for (size_t l = 0; l < kernel.size(); ++l) {
        kernel[l] +=
            (c * (std::exp(dt * a) - 1.0) / a * std::exp(static_cast<double>(l) * dt * a)).real();
      }
    }
    kernel[0] += d_[h];
    return kernel;
  }

 private:
  Values a_real_, a_imag_, c_, log_step_, d_;
  int64_t channels_, heads_;
};

// y, and a measure of the error: sum |K| |u| of the same terms, or |K|_2 |u|_2.
struct LongConvExpectation {
  double y = 0;
  double terms = 0;
  double norms = 0;
};

class LongConvProblem {
 public:
  explicit LongConvProblem(const LongConvCase& c)
      : c_(c),
        ssm_(c.channels, c.heads),
        u_(RandomValues(c.sequences * c.tokens * c.channels, 7)),
        constants_(device_, ssm_.parameters(), c.tokens + c.more, c.dtype) {
    for (float& x : u_) x = Stored(c.dtype, x);
    for (int64_t head = 0; head < c.heads; ++head) {
      kernels_.push_back(ssm_.Kernel(head, c.tokens));
    }
  }

  Device& device() { return device_; }
  const LongConvKernels& constants() const { return constants_; }

  // y [B T, d] by one of the functions of long_conv.h.
  Values Run(void (*convolve)(Device&, const LongConvCall&)) {
    const MatrixShape shape = {c_.sequences * c_.tokens, c_.channels, c_.dtype, c_.gap};
    const DeviceMatrix u(device_, shape, u_);
    const DeviceMatrix y(device_, shape);
    convolve(device_, {constants_, u.view(), c_.sequences, c_.direction, y.view()});
    EXPECT_TRUE(y.SurroundingsAreZero());
    return y.values();
  }

  LongConvExpectation Expected(int64_t sequence, int64_t t, int64_t channel) const {
    const std::vector<double>& kernel =
        kernels_[static_cast<size_t>(channel / (c_.channels / c_.heads))];
    LongConvExpectation e;
    double kernel2 = 0;
    double u2 = 0;
    for (int64_t s = 0; s < c_.tokens; ++s) {
      const int64_t l = c_.direction == Direction::kForward ? t - s : s - t;
      if (l < 0) continue;
      const double k = kernel[static_cast<size_t>(l)];
      const double u = u_[static_cast<size_t>((sequence * c_.tokens + s) * c_.channels + channel)];
      e.y += k * u;
      e.terms += std::abs(k * u);
    }
    for (const double k : kernel) kernel2 += k * k;
    for (int64_t s = 0; s < c_.tokens; ++s) {
      u2 +=
          std::pow(u_[static_cast<size_t>((sequence * c_.tokens + s) * c_.channels + channel)], 2);
    }
    e.norms = std::sqrt(kernel2 * u2);
    return e;
  }

  // Every `stride`-th value, and the last ones, within error(expectation) and the rounding of y.
  template <typename Error>
  void Expect(const Values& y, const Error& error, size_t stride = 1) const {
    for (size_t i = 0; i < y.size(); i += i + stride < y.size() ? stride : 1) {
      const auto row = static_cast<int64_t>(i) / c_.channels;
      const LongConvExpectation e =
          Expected(row / c_.tokens, row % c_.tokens, static_cast<int64_t>(i) % c_.channels);
      const double bound = error(e);
      const double rounding = c_.dtype == DType::kBF16 ? 0x1p-8 * (std::abs(e.y) + bound) : 0;
      ASSERT_NEAR(y[i], e.y, bound + rounding) << "row " << row << " element " << i;
    }
  }

 private:
  const LongConvCase c_;
  RandomDiagonalSsm ssm_;
  Values u_;
  Device device_;
  LongConvKernels constants_;
  std::vector<std::vector<double>> kernels_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_CONV_LONG_CONV_PROBLEM_H_
