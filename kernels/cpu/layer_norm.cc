#include "kernels/cpu/layer_norm.h"

#include <cmath>

#include "kernels/cpu/parallel_rows.h"
#include "kernels/cpu/tensor_memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// sum_i (x_i - shift)^kPower: four chains per lane, then the lanes, then the tail.
template <int kPower>
HWY_INLINE float SumOfPowers(const float* x, int64_t n, float shift) {
  const D d;
  const V offset = hn::Set(d, shift);
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto add = [&](const float* from, V& sum) {
    const V v = hn::Sub(hn::LoadU(d, from), offset);
    sum = kPower == 1 ? hn::Add(sum, v) : hn::MulAdd(v, v, sum);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) add(x + i + j * kLanes, sums[j]);
  }
  for (; i + kLanes <= n; i += kLanes) add(x + i, sums[0]);
  const V all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  float sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; i < n; ++i) {
    const float v = x[i] - shift;
    sum += kPower == 1 ? v : v * v;
  }
  return sum;
}

void NormaliseRow(const float* x, const float* gamma, const float* beta, double epsilon, int64_t n,
                  float* y) {
  const D d;
  const float count = static_cast<float>(n);
  const float mean = SumOfPowers<1>(x, n, 0) / count;
  const float variance = SumOfPowers<2>(x, n, mean) / count;
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + epsilon));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, scale));
    hn::StoreU(hn::MulAdd(v, hn::LoadU(d, gamma + i), hn::LoadU(d, beta + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(NormaliseRow);

void LayerNorm(ThreadPool& pool, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  assert(x.rows == y.rows && x.cols == y.cols && gamma.cols == x.cols && beta.cols == x.cols);
  ParallelRows(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      HWY_DYNAMIC_DISPATCH(NormaliseRow)(F32Row(x, row), F32Row(gamma, 0), F32Row(beta, 0), epsilon,
                                         x.cols, F32Row(y, row));
    }
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
