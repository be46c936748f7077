// Vectors of f32 from and to bf16 in memory. Included once per target.
#if defined(HIPPODROME_KERNELS_CPU_BASE_BF16_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HIPPODROME_KERNELS_CPU_BASE_BF16_LANES_INL_H_
#undef HIPPODROME_KERNELS_CPU_BASE_BF16_LANES_INL_H_
#else
#define HIPPODROME_KERNELS_CPU_BASE_BF16_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class DV>
HWY_INLINE hn::Vec<DV> LoadWide(DV d, const float* row) {
  return hn::LoadU(d, row);
}
template <class DV>
HWY_INLINE hn::Vec<DV> LoadWide(DV d, const BF16* row) {
  const hn::Rebind<uint16_t, DV> halves;
  const hn::RebindToUnsigned<DV> words;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(row));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

// Each lane as ToBF16() rounds it.
template <class DV>
HWY_INLINE hn::Vec<DV> NearestBF16(DV d, hn::Vec<DV> x) {
  const hn::RebindToUnsigned<DV> words;
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto near = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), quiet, near);
  return hn::BitCast(d, hn::And(chosen, hn::Set(words, 0xffff0000u)));
}

// The reverse of LoadWide(). REQUIRES: values of the type.
template <class DV>
HWY_INLINE void StoreNarrow(DV d, hn::Vec<DV> x, float* row) {
  hn::StoreU(x, d, row);
}
template <class DV>
HWY_INLINE void StoreNarrow(DV, hn::Vec<DV> x, BF16* row) {
  const hn::Rebind<uint16_t, DV> halves;
  const hn::RebindToUnsigned<DV> words;
  const auto bits = hn::ShiftRight<16>(hn::BitCast(words, x));
  hn::StoreU(hn::TruncateTo(halves, bits), halves, reinterpret_cast<uint16_t*>(row));
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
