#include "kernels/cpu/h3/h3_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_tile.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_CAPPED(float, kLanes);
using V = hn::Vec<D>;
constexpr int64_t kWidth = hn::MaxLanes(D());

HWY_INLINE V Load(const float* p) { return hn::Load(D(), p); }
HWY_INLINE void Store(V v, float* p) { hn::Store(v, D(), p); }

struct Complex {
  V re, im;
};

HWY_INLINE Complex LoadComplex(const float* p) { return {Load(p), Load(p + kLanes)}; }

HWY_INLINE Complex Multiply(Complex a, Complex b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

// Eight outputs share the loads of four taps.
HWY_INLINE void FirBlock(const float* taps, int64_t count, const float* in, float* out) {
  constexpr int kSteps = 8;
  constexpr int kTaps = 4;
  V sum[kSteps];
  HWY_UNROLL(8)
  for (int i = 0; i < kSteps; ++i) sum[i] = hn::Zero(D());
  for (int64_t j = 0; j < count; j += kTaps) {
    V tap[kTaps];
    HWY_UNROLL(4)
    for (int m = 0; m < kTaps; ++m) tap[m] = Load(taps + (j + m) * kLanes);
    const float* from = in + (count - kTaps - j) * kLanes;
    HWY_UNROLL(11)
    for (int s = 0; s < kSteps + kTaps - 1; ++s) {
      const V value = Load(from + s * kLanes);
      HWY_UNROLL(4)
      for (int m = 0; m < kTaps; ++m) {
        const int i = s - (kTaps - 1) + m;  // output of tap j + m at this input
        if (i >= 0 && i < kSteps) sum[i] = hn::MulAdd(tap[m], value, sum[i]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kSteps; ++i) Store(sum[i], out + i * kLanes);
}

void Fir(const float* taps, int64_t count, const float* in, float* out, int64_t steps) {
  for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
    for (int64_t t = 0; t < steps; t += 8) {
      FirBlock(taps + lane, count, in + t * kLanes + lane, out + t * kLanes + lane);
    }
  }
}

// y_i = sum_{j <= i} K[i - j] u_j inside each block: what the scan of modes leaves out.
HWY_INLINE void ScanInside(const float* kernel, const float* u, float* y, int64_t blocks) {
  V k[kScanSteps];
  HWY_UNROLL(8)
  for (int i = 0; i < kScanSteps; ++i) k[i] = Load(kernel + i * kLanes);
  for (int64_t b = 0; b < blocks; ++b, u += kScanSteps * kLanes, y += kScanSteps * kLanes) {
    HWY_UNROLL(8)
    for (int i = 0; i < kScanSteps; ++i) {
      V sum = hn::Mul(k[i], Load(u));
      HWY_UNROLL(8)
      for (int j = 1; j <= i; ++j) sum = hn::MulAdd(k[i - j], Load(u + j * kLanes), sum);
      Store(sum, y + i * kLanes);
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
  for (int64_t b = 0; b < blocks; ++b, u += kScanSteps * kLanes) {
    if constexpr (kOutput) {
      const Complex c = Multiply(wa, x);
      Store(hn::Add(Load(y), c.re), y);
      HWY_UNROLL(8)
      for (int i = 1; i < kScanSteps; ++i) {
        const V sum = hn::MulAdd(c.re, power[i].re, Load(y + i * kLanes));
        Store(hn::NegMulAdd(c.im, power[i].im, sum), y + i * kLanes);
      }
      y += kScanSteps * kLanes;
    }
    const V first = Load(u);
    V re = hn::MulAdd(power[7].re, first, Load(u + 7 * kLanes));
    V im = hn::Mul(power[7].im, first);
    HWY_UNROLL(8)
    for (int j = 1; j < kScanSteps - 1; ++j) {
      const V value = Load(u + j * kLanes);
      re = hn::MulAdd(power[7 - j].re, value, re);
      im = hn::MulAdd(power[7 - j].im, value, im);
    }
    x = {hn::NegMulAdd(a_scan.im, x.im, hn::MulAdd(a_scan.re, x.re, re)),
         hn::MulAdd(a_scan.im, x.re, hn::MulAdd(a_scan.re, x.im, im))};
  }
  Store(x.re, state);
  Store(x.im, state + kLanes);
}

void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
    ScanInside(rows.kernel + lane, u + lane, y + lane, blocks);
    for (int64_t n = 0; n < rows.count; ++n) {
      ScanMode<true>(rows, n, lane, u + lane, y + lane, blocks, state + n * kModeFloats + lane);
    }
  }
}

void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state) {
  for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
    for (int64_t n = 0; n < rows.count; ++n) {
      ScanMode<false>(rows, n, lane, u + lane, nullptr, blocks, state + n * kModeFloats + lane);
    }
  }
}

void Step(const RowConstants& rows, const float* u, float* y, float* state, const float* ahead) {
  for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
    const V input = Load(u + lane);
    V sum_re = hn::Mul(Load(rows.skip + lane), input);
    V sum_im = hn::Zero(D());
    for (int64_t n = 0; n < rows.count; ++n) {
      hwy::Prefetch(ahead + n * kModeFloats);
      hwy::Prefetch(ahead + n * kModeFloats + kLanes);
      float* at = state + n * kModeFloats + lane;
      const Complex x = LoadComplex(at);
      const Complex a = LoadComplex(rows.modes[n].a + lane);
      const V re = hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, input));
      const V im = hn::MulAdd(a.im, x.re, hn::Mul(a.re, x.im));
      Store(re, at);
      Store(im, at + kLanes);
      const Complex w = LoadComplex(rows.modes[n].w + lane);
      sum_re = hn::MulAdd(w.re, re, sum_re);
      sum_im = hn::MulAdd(w.im, im, sum_im);
    }
    Store(hn::Sub(sum_re, sum_im), y + lane);
  }
}

// Four sums, so that additions need not wait for each other.
void RingDot(const float* taps, const float* ring, int64_t size, int64_t newest, float* out,
             const float* ahead) {
  for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
    V sum[4] = {hn::Zero(D()), hn::Zero(D()), hn::Zero(D()), hn::Zero(D())};
    const float* tap = taps + lane;
    const auto add = [&](int64_t from, int64_t count) HWY_ATTR {
      const float* at = ring + from * kLanes + lane;
      int64_t j = 0;
      for (; j + 4 <= count; j += 4) {
        HWY_UNROLL(4)
        for (int m = 0; m < 4; ++m) {
          hwy::Prefetch(ahead + (from - j - m) * kLanes);
          sum[m] = hn::MulAdd(Load(tap + m * kLanes), Load(at - m * kLanes), sum[m]);
        }
        tap += 4 * kLanes;
        at -= 4 * kLanes;
      }
      for (; j < count; ++j, tap += kLanes, at -= kLanes) {
        sum[0] = hn::MulAdd(Load(tap), Load(at), sum[0]);
      }
    };
    add(newest, newest + 1);
    add(size - 1, size - 1 - newest);
    Store(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), out + lane);
  }
}

void MultiplyRows(TileRows a, TileRows b, int64_t steps, float* out, int64_t out_stride) {
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
      const V x = hn::LoadU(D(), a.data + t * a.stride + lane);
      const V y = hn::LoadU(D(), b.data + t * b.stride + lane);
      hn::StoreU(hn::Mul(x, y), D(), out + t * out_stride + lane);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(Fir);
HWY_EXPORT(Scan);
HWY_EXPORT(Absorb);
HWY_EXPORT(Step);
HWY_EXPORT(RingDot);
HWY_EXPORT(MultiplyRows);

void Fir(const float* taps, int64_t count, const float* in, float* out, int64_t steps) {
  HWY_DYNAMIC_DISPATCH(Fir)(taps, count, in, out, steps);
}

void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  HWY_DYNAMIC_DISPATCH(Scan)(rows, u, y, blocks, state);
}

void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state) {
  HWY_DYNAMIC_DISPATCH(Absorb)(rows, u, blocks, state);
}

void Step(const RowConstants& rows, const float* u, float* y, float* state, const float* ahead) {
  HWY_DYNAMIC_DISPATCH(Step)(rows, u, y, state, ahead);
}

void RingDot(const float* taps, const float* ring, int64_t size, int64_t newest, float* out,
             const float* ahead) {
  HWY_DYNAMIC_DISPATCH(RingDot)(taps, ring, size, newest, out, ahead);
}

void MultiplyRows(TileRows a, TileRows b, int64_t steps, float* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)(a, b, steps, out, out_stride);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
