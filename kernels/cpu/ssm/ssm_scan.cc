#include "kernels/cpu/ssm/ssm_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ssm/ssm_scan.cc"
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

HWY_INLINE Complex Load(const LaneComplex& x, int64_t lane) {
  return {Load(x.re + lane), Load(x.im + lane)};
}

HWY_INLINE void Store(Complex x, int64_t lane, LaneComplex& to) {
  Store(x.re, to.re + lane);
  Store(x.im, to.im + lane);
}

// a x + u for a real u.
HWY_INLINE Complex MultiplyAdd(Complex a, Complex x, V u) {
  return {hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, u)),
          hn::MulAdd(a.im, x.re, hn::Mul(a.re, x.im))};
}

// Adds to y what the modes [first, first + kModesTogether) contribute.
HWY_INLINE void ScanModes(const DiagonalMode* modes, int64_t lane, const float* u, float* y,
                          int64_t tokens, LaneComplex* state) {
  Complex a[kModesTogether], w[kModesTogether], x[kModesTogether];
  HWY_UNROLL(4)
  for (int n = 0; n < kModesTogether; ++n) {
    a[n] = Load(modes[n].a, lane);
    w[n] = Load(modes[n].w, lane);
    x[n] = Load(state[n], lane);
  }
  for (int64_t t = 0; t < tokens; ++t, u += kTileChannels, y += kTileChannels) {
    const V input = Load(u + lane);
    V sum = Load(y + lane);
    HWY_UNROLL(4)
    for (int n = 0; n < kModesTogether; ++n) {
      x[n] = MultiplyAdd(a[n], x[n], input);
      sum = hn::NegMulAdd(w[n].im, x[n].im, hn::MulAdd(w[n].re, x[n].re, sum));
    }
    Store(sum, y + lane);
  }
  HWY_UNROLL(4)
  for (int n = 0; n < kModesTogether; ++n) Store(x[n], lane, state[n]);
}

void ScanDiagonal(const ScanConstants<DiagonalMode>& ssm, const float* u, float* y, int64_t tokens,
                  LaneComplex* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    const V skip = Load(ssm.skip + lane);
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t at = t * kTileChannels + lane;
      Store(hn::Mul(skip, Load(u + at)), y + at);
    }
    for (int64_t n = 0; n < ssm.count; n += kModesTogether) {
      ScanModes(ssm.modes + n, lane, u, y, tokens, state + n);
    }
  }
}

// The parts of Re sum_n a_n x_n, which one chain of additions each makes.
struct RealSum {
  HWY_INLINE void Add(Complex a, Complex x) {
    re = hn::MulAdd(a.re, x.re, re);
    im = hn::MulAdd(a.im, x.im, im);
  }
  HWY_INLINE V Value() const { return hn::Sub(re, im); }

  V re, im;
};

HWY_INLINE RealSum NoSum() { return {hn::Zero(D()), hn::Zero(D())}; }

// Gives y; r becomes that of the new state.
HWY_INLINE V StepLowRank(const ScanConstants<LowRankMode>& ssm, int64_t lane, V u, V& r,
                         LaneComplex* state) {
  RealSum next_r = NoSum();
  RealSum sum = NoSum();
  for (int64_t n = 0; n < ssm.count; ++n) {
    const LowRankMode& mode = ssm.modes[n];
    const Complex p = Load(mode.p, lane);
    const Complex b = Load(mode.b, lane);
    const Complex d = Load(mode.d, lane);
    const Complex x = Load(state[n], lane);
    Complex next = {hn::NegMulAdd(p.re, r, hn::Mul(b.re, u)),
                    hn::NegMulAdd(p.im, r, hn::Mul(b.im, u))};
    next.re = hn::NegMulAdd(d.im, x.im, hn::MulAdd(d.re, x.re, next.re));
    next.im = hn::MulAdd(d.im, x.re, hn::MulAdd(d.re, x.im, next.im));
    Store(next, lane, state[n]);
    next_r.Add(Load(mode.v, lane), next);
    sum.Add(Load(mode.c, lane), next);
  }
  r = next_r.Value();
  return hn::MulAdd(Load(ssm.skip + lane), u, sum.Value());
}

void ScanLowRank(const ScanConstants<LowRankMode>& ssm, const float* u, float* y, int64_t tokens,
                 LaneComplex* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    RealSum sum = NoSum();  // as StepLowRank() adds, to the same bits
    for (int64_t n = 0; n < ssm.count; ++n)
      sum.Add(Load(ssm.modes[n].v, lane), Load(state[n], lane));
    V r = sum.Value();
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t at = t * kTileChannels + lane;
      Store(StepLowRank(ssm, lane, Load(u + at), r, state), y + at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ScanDiagonal);
HWY_EXPORT(ScanLowRank);

void ScanSsm(const ScanConstants<DiagonalMode>& ssm, const float* u, float* y, int64_t tokens,
             LaneComplex* state) {
  HWY_DYNAMIC_DISPATCH(ScanDiagonal)(ssm, u, y, tokens, state);
}

void ScanSsm(const ScanConstants<LowRankMode>& ssm, const float* u, float* y, int64_t tokens,
             LaneComplex* state) {
  HWY_DYNAMIC_DISPATCH(ScanLowRank)(ssm, u, y, tokens, state);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
