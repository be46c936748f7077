#include "kernels/cpu/h3/h3_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_scan.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

static_assert(kTileChannels % kLanes == 0);
HWY_INLINE V Load(const float* p) { return hn::Load(D(), p); }
HWY_INLINE void Store(V v, float* p) { hn::Store(v, D(), p); }

struct Complex {
  V re, im;
};

HWY_INLINE Complex LoadComplex(const float* p) { return {Load(p), Load(p + kTileChannels)}; }

HWY_INLINE Complex Multiply(Complex a, Complex b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

// y_i = sum_{j <= i} K[i - j] u_j inside each block: what the scan of modes leaves out.
HWY_INLINE void ScanInside(const float* kernel, const float* u, float* y, int64_t blocks) {
  V k[kScanSteps];
  HWY_UNROLL(8)
  for (int i = 0; i < kScanSteps; ++i) k[i] = Load(kernel + i * kTileChannels);
  for (int64_t b = 0; b < blocks;
       ++b, u += kScanSteps * kTileChannels, y += kScanSteps * kTileChannels) {
    HWY_UNROLL(8)
    for (int i = 0; i < kScanSteps; ++i) {
      V sum = hn::Mul(k[i], Load(u));
      HWY_UNROLL(8)
      for (int j = 1; j <= i; ++j) sum = hn::MulAdd(k[i - j], Load(u + j * kTileChannels), sum);
      Store(sum, y + i * kTileChannels);
    }
  }
}

// One mode over all blocks. From the state x before a block,
//   y_i += Re(w a^(i+1) x),  x <- a^8 x + sum_j a^(7-j) u_j.
template <bool kOutput>
HWY_INLINE void ScanMode(const RowConstants& rows, int64_t n, int64_t lane, const float* u,
                         float* y, int64_t blocks, float* state) {
  const ModeConstants& mode = rows.modes[n];
  Complex power[kScanSteps];  // power[0] = 1 is not used
  power[1] = LoadComplex(mode.a + lane);
  HWY_UNROLL(8)
  for (int i = 2; i < kScanSteps; ++i) power[i] = Multiply(power[i / 2], power[i - i / 2]);
  const Complex a_scan = LoadComplex(rows.a_scan + n * kModeFloats + lane);
  const Complex wa = Multiply(LoadComplex(mode.w + lane), power[1]);
  Complex x = LoadComplex(state);
  for (int64_t b = 0; b < blocks; ++b, u += kScanSteps * kTileChannels) {
    if constexpr (kOutput) {
      const Complex c = Multiply(wa, x);
      Store(hn::Add(Load(y), c.re), y);
      HWY_UNROLL(8)
      for (int i = 1; i < kScanSteps; ++i) {
        const V sum = hn::MulAdd(c.re, power[i].re, Load(y + i * kTileChannels));
        Store(hn::NegMulAdd(c.im, power[i].im, sum), y + i * kTileChannels);
      }
      y += kScanSteps * kTileChannels;
    }
    const V first = Load(u);
    V re = hn::MulAdd(power[7].re, first, Load(u + 7 * kTileChannels));
    V im = hn::Mul(power[7].im, first);
    HWY_UNROLL(8)
    for (int j = 1; j < kScanSteps - 1; ++j) {
      const V value = Load(u + j * kTileChannels);
      re = hn::MulAdd(power[7 - j].re, value, re);
      im = hn::MulAdd(power[7 - j].im, value, im);
    }
    x = {hn::NegMulAdd(a_scan.im, x.im, hn::MulAdd(a_scan.re, x.re, re)),
         hn::MulAdd(a_scan.im, x.re, hn::MulAdd(a_scan.re, x.im, im))};
  }
  Store(x.re, state);
  Store(x.im, state + kTileChannels);
}

void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    ScanInside(rows.kernel + lane, u + lane, y + lane, blocks);
    for (int64_t n = 0; n < rows.count; ++n) {
      ScanMode<true>(rows, n, lane, u + lane, y + lane, blocks, state + n * kModeFloats + lane);
    }
  }
}

void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state,
            const float* ahead) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t n = 0; n < rows.count; ++n) {
      hwy::Prefetch(ahead + n * kModeFloats);
      hwy::Prefetch(ahead + n * kModeFloats + kTileChannels);
      ScanMode<false>(rows, n, lane, u + lane, nullptr, blocks, state + n * kModeFloats + lane);
    }
  }
}

void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, float* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t n = 0; n < rows.count; ++n) {
      float* at = state + n * kModeFloats + lane;
      const Complex a = LoadComplex(rows.modes[n].a + lane);
      Complex x = LoadComplex(at);
      for (int64_t t = 0; t < tokens; ++t) {
        const V input = Load(u + t * kTileChannels + lane);
        x = {hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, input)),
             hn::MulAdd(a.im, x.re, hn::Mul(a.re, x.im))};
      }
      Store(x.re, at);
      Store(x.im, at + kTileChannels);
    }
  }
}

void LookAhead(const RowConstants& rows, const float* state, float* y) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    V sum[kScanSteps];
    HWY_UNROLL(8)
    for (int i = 0; i < kScanSteps; ++i) sum[i] = hn::Zero(D());
    for (int64_t n = 0; n < rows.count; ++n) {
      const Complex a = LoadComplex(rows.modes[n].a + lane);
      Complex c = Multiply(LoadComplex(rows.modes[n].w + lane),
                           LoadComplex(state + n * kModeFloats + lane));
      HWY_UNROLL(8)
      for (int i = 0; i < kScanSteps; ++i) {
        c = Multiply(c, a);
        sum[i] = hn::Add(sum[i], c.re);
      }
    }
    HWY_UNROLL(8)
    for (int i = 0; i < kScanSteps; ++i) Store(sum[i], y + i * kTileChannels + lane);
  }
}

void AddRecent(const float* kernel, const float* x, int64_t count, const float* sum, float* out) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    V total = Load(sum + lane);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = (count - 1 - i) * kTileChannels + lane;
      total = hn::MulAdd(Load(kernel + i * kTileChannels + lane), Load(x + at), total);
    }
    Store(total, out + lane);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(Scan);
HWY_EXPORT(Absorb);
HWY_EXPORT(AbsorbTokens);
HWY_EXPORT(LookAhead);
HWY_EXPORT(AddRecent);

void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  HWY_DYNAMIC_DISPATCH(Scan)(rows, u, y, blocks, state);
}

void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state,
            const float* ahead) {
  HWY_DYNAMIC_DISPATCH(Absorb)(rows, u, blocks, state, ahead);
}

void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, float* state) {
  HWY_DYNAMIC_DISPATCH(AbsorbTokens)(rows, u, tokens, state);
}

void LookAhead(const RowConstants& rows, const float* state, float* y) {
  HWY_DYNAMIC_DISPATCH(LookAhead)(rows, state, y);
}

void AddRecent(const float* kernel, const float* x, int64_t count, const float* sum, float* out) {
  HWY_DYNAMIC_DISPATCH(AddRecent)(kernel, x, count, sum, out);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
