// A power a^l is a^(32 i) a^j: both factors are tabulated, and the sums over modes (or over times)
// become small matrix products, 32 neighbouring times in the lanes.
#include "kernels/ssm/mode_sum.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ssm/mode_sum.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_CAPPED(double, 8);
using V = hn::Vec<D>;
using Complex = std::complex<double>;
constexpr int64_t kLanes = hn::MaxLanes(D());
constexpr int64_t kTimes = 32;  // of a block, j
constexpr int64_t kRows = 4;    // blocks of a product, i

// x[size + j] = step x[j] for j < size.
HWY_INLINE void Double(double* re, double* im, int64_t size, double step_re, double step_im) {
  for (int64_t j = 0; j < size; ++j) {
    re[size + j] = re[j] * step_re - im[j] * step_im;
    im[size + j] = re[j] * step_im + im[j] * step_re;
  }
}

// The same for whole vectors.
HWY_INLINE void DoubleVectors(double* re, double* im, int64_t size, double step_re,
                              double step_im) {
  const D d;
  const V factor_re = hn::Set(d, step_re);
  const V factor_im = hn::Set(d, step_im);
  for (int64_t j = 0; j < size; j += kLanes) {
    const V x_re = hn::LoadU(d, re + j);
    const V x_im = hn::LoadU(d, im + j);
    hn::StoreU(hn::NegMulAdd(x_im, factor_im, hn::Mul(x_re, factor_re)), d, re + size + j);
    hn::StoreU(hn::MulAdd(x_im, factor_re, hn::Mul(x_re, factor_im)), d, im + size + j);
  }
}

// a_n^j, [n][re | im][kTimes]. Doubling keeps the chain of products short.
void Powers(std::span<const Complex> a, double* powers) {
  for (const Complex& factor : a) {
    double* re = powers;
    double* im = powers + kTimes;
    double step_re = factor.real();
    double step_im = factor.imag();
    re[0] = 1;
    im[0] = 0;
    for (int64_t size = 1; size < kTimes; size *= 2) {
      size < kLanes ? Double(re, im, size, step_re, step_im)
                    : DoubleVectors(re, im, size, step_re, step_im);
      const double square = step_re * step_re - step_im * step_im;
      step_im = 2 * step_re * step_im;
      step_re = square;
    }
    powers += 2 * kTimes;
  }
}

// x_n a_n^(kTimes i) for one block i after another.
class BlockStarts {
 public:
  // last: a^(kTimes - 1), as Powers() wrote it.
  BlockStarts(std::span<const Complex> a, const double* powers, std::vector<double> re,
              std::vector<double> im)
      : modes_(static_cast<int64_t>(a.size())), re_(std::move(re)), im_(std::move(im)) {
    for (int64_t n = 0; n < modes_; ++n) {
      const double* last = powers + n * 2 * kTimes + kTimes - 1;
      const Complex& factor = a[static_cast<size_t>(n)];
      step_re_.push_back(last[0] * factor.real() - last[kTimes] * factor.imag());
      step_im_.push_back(last[0] * factor.imag() + last[kTimes] * factor.real());
    }
  }

  // Writes kRows blocks as [n][re | im][kRows].
  void Next(double* starts) {
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t n = 0; n < modes_; ++n) {
        const auto at = static_cast<size_t>(n);
        starts[n * 2 * kRows + r] = re_[at];
        starts[n * 2 * kRows + kRows + r] = im_[at];
        const double re = re_[at] * step_re_[at] - im_[at] * step_im_[at];
        im_[at] = re_[at] * step_im_[at] + im_[at] * step_re_[at];
        re_[at] = re;
      }
    }
  }

 private:
  int64_t modes_;
  std::vector<double> re_, im_, step_re_, step_im_;
};

// sums[r][j] = Re sum_n starts_n[r] powers_n[j].
void SumBlocks(const double* starts, const double* powers, int64_t modes, double* sums) {
  const D d;
  for (int64_t j = 0; j < kTimes; j += 2 * kLanes) {
    V sum[kRows][2];
    for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
    const double* x = starts;
    const double* p = powers + j;
    for (int64_t n = 0; n < modes; ++n, x += 2 * kRows, p += 2 * kTimes) {
      const V re0 = hn::LoadU(d, p);
      const V re1 = hn::LoadU(d, p + kLanes);
      const V im0 = hn::LoadU(d, p + kTimes);
      const V im1 = hn::LoadU(d, p + kTimes + kLanes);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const V re = hn::Set(d, x[r]);
        const V im = hn::Set(d, x[kRows + r]);
        sum[r][0] = hn::NegMulAdd(im, im0, hn::MulAdd(re, re0, sum[r][0]));
        sum[r][1] = hn::NegMulAdd(im, im1, hn::MulAdd(re, re1, sum[r][1]));
      }
    }
    for (int r = 0; r < kRows; ++r) {
      hn::StoreU(sum[r][0], d, sums + r * kTimes + j);
      hn::StoreU(sum[r][1], d, sums + r * kTimes + j + kLanes);
    }
  }
}

// sums_n[j] += sum_r starts_n[r] g[r][j], and the same with the weight first_time + kTimes r; sums:
// [n][re, im, weighted re, weighted im][kTimes].
void AddBlocks(const double* starts, const double* g, int64_t first_time, int64_t modes,
               double* sums) {
  const D d;
  for (int64_t j = 0; j < kTimes; j += kLanes) {
    V value[kRows];
    V weighted[kRows];
    for (int r = 0; r < kRows; ++r) {
      value[r] = hn::LoadU(d, g + r * kTimes + j);
      weighted[r] = hn::Mul(value[r], hn::Set(d, static_cast<double>(first_time + kTimes * r)));
    }
    const double* x = starts;
    double* to = sums + j;
    for (int64_t n = 0; n < modes; ++n, x += 2 * kRows, to += 4 * kTimes) {
      V re = hn::LoadU(d, to);
      V im = hn::LoadU(d, to + kTimes);
      V weighted_re = hn::LoadU(d, to + 2 * kTimes);
      V weighted_im = hn::LoadU(d, to + 3 * kTimes);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const V x_re = hn::Set(d, x[r]);
        const V x_im = hn::Set(d, x[kRows + r]);
        re = hn::MulAdd(x_re, value[r], re);
        im = hn::MulAdd(x_im, value[r], im);
        weighted_re = hn::MulAdd(x_re, weighted[r], weighted_re);
        weighted_im = hn::MulAdd(x_im, weighted[r], weighted_im);
      }
      hn::StoreU(re, d, to);
      hn::StoreU(im, d, to + kTimes);
      hn::StoreU(weighted_re, d, to + 2 * kTimes);
      hn::StoreU(weighted_im, d, to + 3 * kTimes);
    }
  }
}

void SumModes(std::span<const Complex> a, std::span<const Complex> w, std::span<double> kernel) {
  const auto modes = static_cast<int64_t>(a.size());
  std::vector<double> powers(a.size() * 2 * kTimes);
  Powers(a, powers.data());
  std::vector<double> re;
  std::vector<double> im;
  for (const Complex& value : w) {
    re.push_back(value.real());
    im.push_back(value.imag());
  }
  BlockStarts blocks(a, powers.data(), std::move(re), std::move(im));
  std::vector<double> starts(a.size() * 2 * kRows);
  double sums[kRows * kTimes];
  for (size_t l = 0; l < kernel.size(); l += kRows * kTimes) {
    blocks.Next(starts.data());
    SumBlocks(starts.data(), powers.data(), modes, sums);
    std::copy_n(sums, std::min<size_t>(kRows * kTimes, kernel.size() - l), kernel.data() + l);
  }
}

// sum_j (x_j + i y_j) p_j and the same of (u_j + j x_j) + i (v_j + j y_j), where x, y, u, v follow
// one another and p is a row of Powers().
void FoldTimes(const double* sums, const double* power, Complex& m0, Complex& m1) {
  const D d;
  V m0_re = hn::Zero(d);
  V m0_im = hn::Zero(d);
  V m1_re = hn::Zero(d);
  V m1_im = hn::Zero(d);
  V time = hn::Iota(d, 0);
  for (int64_t j = 0; j < kTimes; j += kLanes) {
    const V p_re = hn::LoadU(d, power + j);
    const V p_im = hn::LoadU(d, power + kTimes + j);
    const V x = hn::LoadU(d, sums + j);
    const V y = hn::LoadU(d, sums + kTimes + j);
    const V u = hn::MulAdd(time, x, hn::LoadU(d, sums + 2 * kTimes + j));
    const V v = hn::MulAdd(time, y, hn::LoadU(d, sums + 3 * kTimes + j));
    m0_re = hn::NegMulAdd(y, p_im, hn::MulAdd(x, p_re, m0_re));
    m0_im = hn::MulAdd(y, p_re, hn::MulAdd(x, p_im, m0_im));
    m1_re = hn::NegMulAdd(v, p_im, hn::MulAdd(u, p_re, m1_re));
    m1_im = hn::MulAdd(v, p_re, hn::MulAdd(u, p_im, m1_im));
    time = hn::Add(time, hn::Set(d, static_cast<double>(kLanes)));
  }
  m0 = {hn::GetLane(hn::SumOfLanes(d, m0_re)), hn::GetLane(hn::SumOfLanes(d, m0_im))};
  m1 = {hn::GetLane(hn::SumOfLanes(d, m1_re)), hn::GetLane(hn::SumOfLanes(d, m1_im))};
}

void ModeMoments(std::span<const Complex> a, std::span<const double> g, std::span<Complex> m0,
                 std::span<Complex> m1) {
  const auto modes = static_cast<int64_t>(a.size());
  std::vector<double> powers(a.size() * 2 * kTimes);
  Powers(a, powers.data());
  BlockStarts blocks(a, powers.data(), std::vector<double>(a.size(), 1.0),
                     std::vector<double>(a.size(), 0.0));
  std::vector<double> starts(a.size() * 2 * kRows);
  std::vector<double> sums(a.size() * 4 * kTimes);
  for (size_t l = 0; l < g.size(); l += kRows * kTimes) {
    double values[kRows * kTimes] = {};
    std::copy_n(g.data() + l, std::min<size_t>(kRows * kTimes, g.size() - l), values);
    blocks.Next(starts.data());
    AddBlocks(starts.data(), values, static_cast<int64_t>(l), modes, sums.data());
  }
  for (size_t n = 0; n < a.size(); ++n) {
    FoldTimes(sums.data() + n * 4 * kTimes, powers.data() + n * 2 * kTimes, m0[n], m1[n]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome {

HWY_EXPORT(SumModes);
HWY_EXPORT(ModeMoments);

void SumModes(std::span<const std::complex<double>> a, std::span<const std::complex<double>> w,
              std::span<double> kernel) {
  assert(a.size() == w.size());
  HWY_DYNAMIC_DISPATCH(SumModes)(a, w, kernel);
}

void ModeMoments(std::span<const std::complex<double>> a, std::span<const double> g,
                 std::span<std::complex<double>> m0, std::span<std::complex<double>> m1) {
  assert(m0.size() == a.size() && m1.size() == a.size());
  HWY_DYNAMIC_DISPATCH(ModeMoments)(a, g, m0, m1);
}

}  // namespace hippodrome
#endif  // HWY_ONCE
