#include "kernels/cpu/rows/dropout.h"

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/dropout.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// DropoutBits() of a vector of columns.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Bits(D d, DropoutRow row, V column) {
  V x = hn::Add(hn::Set(d, row.low), hn::Mul(column, hn::Set(d, kDropoutWeyl)));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, kDropoutMix1));
  x = hn::Xor(x, hn::Set(d, row.high));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(d, kDropoutMix2));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

void DropColumns(DropoutRow row, uint32_t threshold, float scale, int64_t first, int64_t n,
                 float* x) {
  const D d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const int64_t lanes = hn::Lanes(d);
  const auto lane = hn::Iota(du, 0);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = Bits(du, row, hn::Add(lane, hn::Set(du, static_cast<uint32_t>(first + i))));
    const auto dropped = hn::RebindMask(d, hn::Lt(bits, hn::Set(du, threshold)));
    const auto kept = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale));
    hn::StoreU(hn::IfThenZeroElse(dropped, kept), d, x + i);
  }
  for (; i < n; ++i) {
    x[i] = DropoutBits(row, static_cast<uint32_t>(first + i)) < threshold ? 0 : x[i] * scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(DropColumns);

void DropColumns(DropoutRow row, uint32_t threshold, float scale, int64_t first, int64_t n,
                 float* x) {
  HWY_DYNAMIC_DISPATCH(DropColumns)(row, threshold, scale, first, n, x);
}

void Drop(ThreadPool& pool, double p, uint64_t seed, Tensor x) {
  assert(p >= 0 && p < 1);
  if (p == 0) return;
  const uint32_t threshold = DropoutThreshold(p);
  const float scale = static_cast<float>(1 / (1 - p));
  ParallelRows(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      DropColumns(DropoutRowOf(seed, row), threshold, scale, 0, x.cols, F32Row(x, row));
    }
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
