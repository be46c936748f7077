#include "kernels/cpu/attention/outer_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/outer_scan.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

static_assert(kOuterColumns % kLanes == 0);

// The tokens [token, token + kTokens) on the columns [column, column + kVectors * kLanes).
template <int kTokens, int kVectors>
HWY_INLINE void ScanColumns(const OuterScan& s, int64_t token, int64_t column) {
  const D d;
  const int64_t first = token * s.step;
  V y[kTokens][kVectors], out[kTokens][kVectors];
  HWY_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      y[t][v] = hn::Load(d, s.y + first + t * s.step + column + v * kLanes);
      out[t][v] = hn::Zero(d);
    }
  }
  for (int64_t i = 0; i < s.rows; ++i) {
    float* row = s.matrix + i * s.width + column;
    V m[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) m[v] = hn::Load(d, row + v * kLanes);
    HWY_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) {
      const V x = hn::Set(d, s.x[first + t * s.step + i]);
      const V w = hn::Set(d, s.w[first + t * s.step + i]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        m[v] = hn::MulAdd(x, y[t][v], m[v]);
        out[t][v] = hn::MulAdd(w, m[v], out[t][v]);
      }
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) hn::Store(m[v], d, row + v * kLanes);
  }
  HWY_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(out[t][v], d, s.out + first + t * s.step + column + v * kLanes);
    }
  }
}

// Several tokens together share what is read of M; a token alone has several chains of sums.
void Scan(const OuterScan& s) {
  constexpr int kTokens = 4;
  constexpr int kVectors = 4;
  int64_t token = 0;
  for (; token + kTokens <= s.tokens; token += kTokens) {
    for (int64_t c = 0; c < s.width; c += kLanes) ScanColumns<kTokens, 1>(s, token, c);
  }
  for (; token < s.tokens; ++token) {
    int64_t c = 0;
    for (; c + kVectors * kLanes <= s.width; c += kVectors * kLanes) {
      ScanColumns<1, kVectors>(s, token, c);
    }
    for (; c < s.width; c += kLanes) ScanColumns<1, 1>(s, token, c);
  }
}

// NaN stays.
template <class DV>
HWY_INLINE hn::Vec<DV> Feature(DV d, hn::Vec<DV> x) {
  const auto zero = hn::Zero(d);
  const auto low = hn::Le(x, zero);
  return hn::IfThenElse(low, Exp(d, hn::Min(x, zero)), hn::Add(x, hn::Set(d, 1.0f)));
}

void Features(const float* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::Store(Feature(D(), hn::LoadU(D(), x + i)), D(), y + i);
  for (; i < n; ++i) hn::StoreU(Feature(One(), hn::LoadU(One(), x + i)), One(), y + i);
  for (; i % kOuterColumns != 0; ++i) y[i] = 0;
}

float AddDot(const float* k, const float* q, int64_t width, float* z) {
  const D d;
  V sum = hn::Zero(d);
  for (int64_t i = 0; i < width; i += kLanes) {
    const V next = hn::Add(hn::Load(d, z + i), hn::Load(d, k + i));
    hn::Store(next, d, z + i);
    sum = hn::MulAdd(hn::Load(d, q + i), next, sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(Scan);
HWY_EXPORT(Features);
HWY_EXPORT(AddDot);

void RunOuterScan(const OuterScan& scan) { HWY_DYNAMIC_DISPATCH(Scan)(scan); }

void LinearAttentionFeatures(const float* x, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(Features)(x, n, y);
}

float AddAndDot(const float* k, const float* q, int64_t width, float* z) {
  return HWY_DYNAMIC_DISPATCH(AddDot)(k, q, width, z);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
