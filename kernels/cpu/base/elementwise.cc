#include "kernels/cpu/base/elementwise.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/base/parallel_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/base/elementwise.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

void AddSpan(int64_t n, const float* x, float* y) {
  const D d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] += x[i];
}

// average + rate (x - average): an average of equal values stays what they are.
void AverageSpan(int64_t n, float rate, const float* x, float* average) {
  const D d;
  const V weight = hn::Set(d, rate);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V old = hn::LoadU(d, average + i);
    hn::StoreU(hn::MulAdd(weight, hn::Sub(hn::LoadU(d, x + i), old), old), d, average + i);
  }
  for (; i < n; ++i) average[i] += rate * (x[i] - average[i]);
}

// Squares of floats are exact in double.
double SquareSpan(int64_t n, const float* x) {
  using D64 = HWY_CAPPED(double, 8);
  constexpr int64_t kLanes64 = hn::MaxLanes(D64());
  const D64 d;
  const hn::Rebind<float, D64> d32;
  hn::Vec<D64> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes64 <= n; i += 4 * kLanes64) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto v = hn::PromoteTo(d, hn::LoadU(d32, x + i + j * kLanes64));
      sums[j] = hn::MulAdd(v, v, sums[j]);
    }
  }
  const auto all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  double sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(AddSpan);
HWY_EXPORT(AverageSpan);
HWY_EXPORT(SquareSpan);

void Fill(ThreadPool& pool, float value, Tensor x) {
  Spans<1>({x}).ForEach(pool, [&](int64_t, int64_t n, const std::array<float*, 1>& at) {
    std::fill_n(at[0], n, value);
  });
}

void Copy(ThreadPool& pool, Tensor x, Tensor y) {
  Spans<2>({x, y}).ForEach(pool, [&](int64_t, int64_t n, const std::array<float*, 2>& at) {
    std::copy_n(at[0], n, at[1]);
  });
}

void Add(ThreadPool& pool, Tensor x, Tensor y) {
  Spans<2>({x, y}).ForEach(pool, [&](int64_t, int64_t n, const std::array<float*, 2>& at) {
    HWY_DYNAMIC_DISPATCH(AddSpan)(n, at[0], at[1]);
  });
}

double SumOfSquares(ThreadPool& pool, Tensor x) {
  const Spans<1> spans({x});
  std::vector<double> sums(static_cast<size_t>(spans.count()));
  spans.ForEach(pool, [&](int64_t index, int64_t n, const std::array<float*, 1>& at) {
    sums[static_cast<size_t>(index)] = HWY_DYNAMIC_DISPATCH(SquareSpan)(n, at[0]);
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void MovingAverage(ThreadPool& pool, Tensor x, double decay, Tensor average) {
  const float rate = static_cast<float>(1 - decay);
  Spans<2>({x, average}).ForEach(pool, [&](int64_t, int64_t n, const std::array<float*, 2>& at) {
    HWY_DYNAMIC_DISPATCH(AverageSpan)(n, rate, at[0], at[1]);
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
