#include "kernels/cpu/h3/h3_scan.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_scan.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/bf16_lanes-inl.h"
#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

static_assert(kTileChannels % kLanes == 0);
HWY_INLINE V Load(const float* p) { return hn::Load(D(), p); }
HWY_INLINE void Store(V v, float* p) { hn::Store(v, D(), p); }
HWY_INLINE V Load(const BF16* p) { return LoadWide(D(), p); }
HWY_INLINE void Store(V v, BF16* p) { StoreNarrow(D(), v, p); }

// The nearest value of the type in which states are stored.
template <typename Stored>
HWY_INLINE V Nearest(V v) {
  if constexpr (std::is_same_v<Stored, BF16>) return NearestBF16(D(), v);
  return v;
}

struct Complex {
  V re, im;
};

template <typename Stored>
HWY_INLINE Complex LoadComplex(const Stored* p) {
  return {Load(p), Load(p + kTileChannels)};
}
// REQUIRES: values of the type.
template <typename Stored>
HWY_INLINE void StoreComplex(Complex x, Stored* p) {
  Store(x.re, p);
  Store(x.im, p + kTileChannels);
}
template <typename Stored>
HWY_INLINE Complex Nearest(Complex x) {
  return {Nearest<Stored>(x.re), Nearest<Stored>(x.im)};
}

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

// Into the second-level cache: the first has little room beside the constants of a group.
HWY_INLINE void FetchAhead(const void* line) { __builtin_prefetch(line, 0, 2); }

// Constants of one mode in registers.
struct Mode {
  HWY_INLINE Mode(const ModeConstants& mode, int64_t lane)
      : a_scan(LoadComplex(mode.a_scan + lane)), wa(LoadComplex(mode.wa + lane)) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) a[i] = LoadComplex(mode.a[i] + lane);
  }
  Complex a[4];  // a ... a^4
  Complex a_scan;
  Complex wa;
};

// a x + b
HWY_INLINE Complex MultiplyAdd(Complex a, Complex x, Complex b) {
  return {hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, b.re)),
          hn::MulAdd(a.im, x.re, hn::MulAdd(a.re, x.im, b.im))};
}

// a^3 u_0 + a^2 u_1 + a u_2 + u_3
HWY_INLINE Complex AbsorbHalf(const Mode& mode, const float* u) {
  Complex sum = {Load(u + 3 * kTileChannels), hn::Zero(D())};
  HWY_UNROLL(3)
  for (int j = 0; j < 3; ++j) {
    const V value = Load(u + j * kTileChannels);
    sum.re = hn::MulAdd(mode.a[2 - j].re, value, sum.re);
    sum.im = j == 0 ? hn::Mul(mode.a[2].im, value) : hn::MulAdd(mode.a[2 - j].im, value, sum.im);
  }
  return sum;
}

// x <- a^8 x + sum_j a^(7-j) u_j, in halves: short chains, of four powers.
HWY_INLINE Complex AbsorbBlock(const Mode& mode, const float* u, Complex x) {
  const Complex late = AbsorbHalf(mode, u + 4 * kTileChannels);
  const Complex inputs = MultiplyAdd(mode.a[3], AbsorbHalf(mode, u), late);
  return MultiplyAdd(mode.a_scan, x, inputs);
}

// sum(i, add) for the outputs i of a block, where add(y) = y + Re(w a^(i+1) x).
template <typename Sum>
HWY_INLINE void Outputs(const Mode& mode, Complex x, const Sum& sum) {
  Complex z = Multiply(mode.wa, x);
  HWY_UNROLL(2)
  for (int half = 0; half < kScanSteps; half += 4) {
    if (half > 0) z = Multiply(mode.a[3], z);
    sum(half, [&](V y) { return hn::Add(y, z.re); });
    HWY_UNROLL(3)
    for (int i = 1; i < 4; ++i) {
      const Complex a = mode.a[i - 1];
      sum(half + i, [&](V y) { return hn::NegMulAdd(z.im, a.im, hn::MulAdd(z.re, a.re, y)); });
    }
  }
}

// One mode over all blocks. From the state x before a block,
//   y_i += Re(w a^(i+1) x),  x <- a^8 x + sum_j a^(7-j) u_j,
// which is rounded to what is stored: after each block where there is output, else at the end.
template <bool kOutput, typename Stored>
HWY_INLINE void ScanMode(const RowConstants& rows, int64_t n, int64_t lane, const float* u,
                         float* y, int64_t blocks, Stored* state) {
  const Mode mode(rows.modes[n], lane);
  Complex x = LoadComplex(state);
  for (int64_t b = 0; b < blocks; ++b, u += kScanSteps * kTileChannels) {
    if constexpr (kOutput) {
      Outputs(mode, x, [&](int i, const auto& add) {
        Store(add(Load(y + i * kTileChannels)), y + i * kTileChannels);
      });
      y += kScanSteps * kTileChannels;
    }
    x = AbsorbBlock(mode, u, x);
    if constexpr (kOutput) x = Nearest<Stored>(x);
  }
  StoreComplex(Nearest<Stored>(x), state);
}

template <typename Stored>
HWY_INLINE void ScanRows(const RowConstants& rows, const float* u, float* y, int64_t blocks,
                         Stored* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    ScanInside(rows.kernel + lane, u + lane, y + lane, blocks);
    for (int64_t n = 0; n < rows.count; ++n) {
      ScanMode<true>(rows, n, lane, u + lane, y + lane, blocks, state + n * kModeFloats + lane);
    }
  }
}

template <typename Stored>
HWY_INLINE void AbsorbRows(const RowConstants& rows, const float* u, int64_t blocks,
                           Stored* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t n = 0; n < rows.count; ++n) {
      ScanMode<false>(rows, n, lane, u + lane, nullptr, blocks, state + n * kModeFloats + lane);
    }
  }
}

template <typename Stored>
HWY_INLINE void AbsorbTokensOf(const RowConstants& rows, const float* u, int64_t tokens,
                               Stored* state) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t n = 0; n < rows.count; ++n) {
      Stored* at = state + n * kModeFloats + lane;
      const Complex a = LoadComplex(rows.modes[n].a[0] + lane);
      Complex x = LoadComplex(at);
      for (int64_t t = 0; t < tokens; ++t) {
        const V input = Load(u + t * kTileChannels + lane);
        x = {hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, input)),
             hn::MulAdd(a.im, x.re, hn::Mul(a.re, x.im))};
      }
      StoreComplex(Nearest<Stored>(x), at);
    }
  }
}

// visit(n, mode, x) gives the state of mode n from the stored one.
template <typename Stored, typename Visit>
HWY_INLINE void LookAheadFrom(const RowConstants& rows, const Stored* state, float* y, int64_t lane,
                              const Visit& visit) {
  V sum[kScanSteps];
  HWY_UNROLL(8)
  for (int i = 0; i < kScanSteps; ++i) sum[i] = hn::Zero(D());
  for (int64_t n = 0; n < rows.count; ++n) {
    const Mode mode(rows.modes[n], lane);
    const Complex x = visit(n, mode, LoadComplex(state + n * kModeFloats + lane));
    Outputs(mode, x, [&](int i, const auto& add) { sum[i] = add(sum[i]); });
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kScanSteps; ++i) Store(sum[i], y + i * kTileChannels + lane);
}

template <typename Stored>
HWY_INLINE void LookAheadOf(const RowConstants& rows, const Stored* state, float* y) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    LookAheadFrom(rows, state, y, lane, [](int64_t, const Mode&, Complex x) { return x; });
  }
}

// y_j += sum over the ages [1, count) of what is `age` before `next`, taps[age + j] where it is
// one.
template <typename Stored>
HWY_INLINE void AddAges(const float* taps, int64_t count, const Stored* ring, int64_t next,
                        const Stored* ahead, V (&y)[kScanSteps]) {
  for (int64_t age = 1; age < count; ++age) {
    const int64_t row = next >= age ? next - age : next - age + count;
    FetchAhead(ahead + row * kTileChannels);
    const V k = Load(ring + row * kTileChannels);
    const float* tap = taps + age * kTileChannels;
    if (age + kScanSteps <= count) {
      HWY_UNROLL(8)
      for (int j = 0; j < kScanSteps; ++j) {
        y[j] = hn::MulAdd(Load(tap + j * kTileChannels), k, y[j]);
      }
    } else {
      HWY_UNROLL(8)
      for (int j = 0; j < kScanSteps; ++j) {
        if (age + j < count) y[j] = hn::MulAdd(Load(tap + j * kTileChannels), k, y[j]);
      }
    }
  }
}

template <typename Stored>
HWY_INLINE void LookAheadInRingOf(const float* taps, int64_t count, const Stored* ring,
                                  int64_t next, float* y, const Stored* ahead) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    V sum[kScanSteps];
    HWY_UNROLL(8)
    for (int j = 0; j < kScanSteps; ++j) sum[j] = hn::Zero(D());
    AddAges(taps + lane, count, ring + lane, next, ahead, sum);
    HWY_UNROLL(8)
    for (int j = 0; j < kScanSteps; ++j) Store(sum[j], y + j * kTileChannels + lane);
  }
}

HWY_INLINE void CopyRow(StoreForm form, const float* from, float* to) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    if (form == StoreForm::kStream) {
      hn::Stream(Load(from + lane), D(), to + lane);
    } else {
      Store(Load(from + lane), to + lane);
    }
  }
}

void StoreAhead(const float* tile, const TokenRows& rows, int64_t first, int64_t block,
                StoreForm form) {
  for (int64_t t = first; t < kScanSteps; ++t, tile += kTileChannels) {
    CopyRow(form, tile, rows.At(t, block));
  }
}

template <typename Stored>
HWY_INLINE void AbsorbAndLookAheadOf(const RowConstants& rows, const TokenRows& inputs,
                                     const TokenRows& sums, int64_t block, StoreForm form,
                                     Stored* state, const Stored* ahead) {
  HWY_ALIGN float u[kBlockFloats];
  HWY_ALIGN float y[kBlockFloats];
  for (int64_t t = 0; t < kScanSteps; ++t) {
    CopyRow(StoreForm::kReplace, inputs.At(t, block), u + t * kTileChannels);
  }
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    LookAheadFrom(rows, state, y, lane, [&](int64_t n, const Mode& mode, Complex x) {
      FetchAhead(ahead + n * kModeFloats);
      FetchAhead(ahead + n * kModeFloats + kTileChannels);
      x = Nearest<Stored>(AbsorbBlock(mode, u + lane, x));
      StoreComplex(x, state + n * kModeFloats + lane);
      return x;
    });
  }
  HWY_NAMESPACE::StoreAhead(y, sums, 0, block, form);
}

HWY_INLINE V Recent(const float* kernel, const float* x, int64_t stride, int64_t count, V sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum = hn::MulAdd(Load(kernel + i * kTileChannels), Load(x + (count - 1 - i) * stride), sum);
  }
  return sum;
}

void AddRecent(const float* kernel, TileRows x, int64_t count, const float* sum, float* out) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    Store(Recent(kernel + lane, x.data + lane, x.stride, count, Load(sum + lane)), out + lane);
  }
}

// The lines that a step reads of what is pending in adjacent groups, row after row as they lie in
// memory: asked for group after group, they took 5 to 15 % longer on a Zen 5.
class PendingLines {
 public:
  HWY_INLINE PendingLines(const TokenStep& step, int64_t groups)
      : step_(step),
        row_floats_(groups * kTileChannels),
        keys_(step.j + 1 - step.first_key),
        inputs_(step.j + 1 - step.first_input) {
    Start(0);
  }

  // Fetches as many as there are of one group.
  HWY_INLINE void FetchShare() {
    const int64_t rows = keys_ + inputs_ + 2;
    for (int64_t i = 0; i < rows; ++i, at_ += kTileChannels) {
      if (at_ == end_) Start(row_ + 1);
      hwy::Prefetch(at_);
    }
  }

 private:
  HWY_INLINE void Start(int64_t row) {
    row_ = row;
    at_ = Row(row);
    end_ = at_ + row_floats_;
  }

  HWY_INLINE const float* Row(int64_t row) const {
    const PendingRows& pending = step_.pending;
    if (row < keys_) return pending.keys.At(step_.first_key + row, 0);
    row -= keys_;
    if (row < inputs_) return pending.inputs.At(step_.first_input + row, 0);
    return (row == inputs_ ? pending.key_sums : pending.sums).At(step_.j, 0);
  }

  const TokenStep& step_;
  const int64_t row_floats_;
  const int64_t keys_;  // rows of them
  const int64_t inputs_;
  int64_t row_;
  const float* at_;
  const float* end_;  // of the row
};

template <typename Stored>
HWY_INLINE void StepChannelsOf(const TokenStep& step, int64_t groups, const TokenStep* next) {
  const int64_t j = step.j;
  PendingLines ahead(next != nullptr ? *next : step, groups);
  for (int64_t g = 0; g < groups; ++g) {
    if (next != nullptr) ahead.FetchShare();
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      const auto recent = [&](const float* kernel, const TokenRows& x, int64_t first,
                              const TokenRows& sums) {
        return Recent(kernel + lane, x.At(first, g) + lane, x.stride, j + 1 - first,
                      Load(sums.At(j, g) + lane));
      };
      const int64_t channel = g * kTileChannels + lane;
      Store(Nearest<Stored>(hn::LoadU(D(), step.k + channel)), step.pending.keys.At(j, g) + lane);
      const V ks = recent(step.taps + g * step.taps_stride, step.pending.keys, step.first_key,
                          step.pending.key_sums);
      Store(hn::Mul(ks, hn::LoadU(D(), step.v + channel)), step.pending.inputs.At(j, g) + lane);
      const V y = recent(step.kernel + g * step.kernel_stride, step.pending.inputs,
                         step.first_input, step.pending.sums);
      hn::StoreU(hn::Mul(y, hn::LoadU(D(), step.q + channel)), D(), step.o + channel);
    }
  }
}

// Those for each type in which states are stored.

void ScanF32(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  ScanRows(rows, u, y, blocks, state);
}
void ScanBF16(const RowConstants& rows, const float* u, float* y, int64_t blocks, BF16* state) {
  ScanRows(rows, u, y, blocks, state);
}
void AbsorbF32(const RowConstants& rows, const float* u, int64_t blocks, float* state) {
  AbsorbRows(rows, u, blocks, state);
}
void AbsorbBF16(const RowConstants& rows, const float* u, int64_t blocks, BF16* state) {
  AbsorbRows(rows, u, blocks, state);
}
void AbsorbTokensF32(const RowConstants& rows, const float* u, int64_t tokens, float* state) {
  AbsorbTokensOf(rows, u, tokens, state);
}
void AbsorbTokensBF16(const RowConstants& rows, const float* u, int64_t tokens, BF16* state) {
  AbsorbTokensOf(rows, u, tokens, state);
}
void LookAheadF32(const RowConstants& rows, const float* state, float* y) {
  LookAheadOf(rows, state, y);
}
void LookAheadBF16(const RowConstants& rows, const BF16* state, float* y) {
  LookAheadOf(rows, state, y);
}
void LookAheadInRingF32(const float* taps, int64_t count, const float* ring, int64_t next, float* y,
                        const float* ahead) {
  LookAheadInRingOf(taps, count, ring, next, y, ahead);
}
void LookAheadInRingBF16(const float* taps, int64_t count, const BF16* ring, int64_t next, float* y,
                         const BF16* ahead) {
  LookAheadInRingOf(taps, count, ring, next, y, ahead);
}
void AbsorbAndLookAheadF32(const RowConstants& rows, const TokenRows& inputs, const TokenRows& sums,
                           int64_t block, StoreForm form, float* state, const float* ahead) {
  AbsorbAndLookAheadOf(rows, inputs, sums, block, form, state, ahead);
}
void AbsorbAndLookAheadBF16(const RowConstants& rows, const TokenRows& inputs,
                            const TokenRows& sums, int64_t block, StoreForm form, BF16* state,
                            const BF16* ahead) {
  AbsorbAndLookAheadOf(rows, inputs, sums, block, form, state, ahead);
}
void StepChannelsF32(const TokenStep& step, int64_t groups, const TokenStep* next) {
  StepChannelsOf<float>(step, groups, next);
}
void StepChannelsBF16(const TokenStep& step, int64_t groups, const TokenStep* next) {
  StepChannelsOf<BF16>(step, groups, next);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ScanF32);
HWY_EXPORT(ScanBF16);
HWY_EXPORT(AbsorbF32);
HWY_EXPORT(AbsorbBF16);
HWY_EXPORT(AbsorbTokensF32);
HWY_EXPORT(AbsorbTokensBF16);
HWY_EXPORT(LookAheadF32);
HWY_EXPORT(LookAheadBF16);
HWY_EXPORT(LookAheadInRingF32);
HWY_EXPORT(LookAheadInRingBF16);
HWY_EXPORT(StoreAhead);
HWY_EXPORT(AbsorbAndLookAheadF32);
HWY_EXPORT(AbsorbAndLookAheadBF16);
HWY_EXPORT(StepChannelsF32);
HWY_EXPORT(StepChannelsBF16);
HWY_EXPORT(AddRecent);

void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state) {
  HWY_DYNAMIC_DISPATCH(ScanF32)(rows, u, y, blocks, state);
}
void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, BF16* state) {
  HWY_DYNAMIC_DISPATCH(ScanBF16)(rows, u, y, blocks, state);
}

void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state) {
  HWY_DYNAMIC_DISPATCH(AbsorbF32)(rows, u, blocks, state);
}
void Absorb(const RowConstants& rows, const float* u, int64_t blocks, BF16* state) {
  HWY_DYNAMIC_DISPATCH(AbsorbBF16)(rows, u, blocks, state);
}

void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, float* state) {
  HWY_DYNAMIC_DISPATCH(AbsorbTokensF32)(rows, u, tokens, state);
}
void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, BF16* state) {
  HWY_DYNAMIC_DISPATCH(AbsorbTokensBF16)(rows, u, tokens, state);
}

void LookAhead(const RowConstants& rows, const float* state, float* y) {
  HWY_DYNAMIC_DISPATCH(LookAheadF32)(rows, state, y);
}
void LookAhead(const RowConstants& rows, const BF16* state, float* y) {
  HWY_DYNAMIC_DISPATCH(LookAheadBF16)(rows, state, y);
}

void LookAheadInRing(const float* taps, int64_t count, const float* ring, int64_t next, float* y,
                     const float* ahead) {
  HWY_DYNAMIC_DISPATCH(LookAheadInRingF32)(taps, count, ring, next, y, ahead);
}
void LookAheadInRing(const float* taps, int64_t count, const BF16* ring, int64_t next, float* y,
                     const BF16* ahead) {
  HWY_DYNAMIC_DISPATCH(LookAheadInRingBF16)(taps, count, ring, next, y, ahead);
}

void StoreAhead(const float* tile, const TokenRows& rows, int64_t first, int64_t block,
                StoreForm form) {
  HWY_DYNAMIC_DISPATCH(StoreAhead)(tile, rows, first, block, form);
}

void AbsorbAndLookAhead(const RowConstants& rows, const TokenRows& inputs, const TokenRows& sums,
                        int64_t block, StoreForm form, float* state, const float* ahead) {
  HWY_DYNAMIC_DISPATCH(AbsorbAndLookAheadF32)(rows, inputs, sums, block, form, state, ahead);
}
void AbsorbAndLookAhead(const RowConstants& rows, const TokenRows& inputs, const TokenRows& sums,
                        int64_t block, StoreForm form, BF16* state, const BF16* ahead) {
  HWY_DYNAMIC_DISPATCH(AbsorbAndLookAheadBF16)(rows, inputs, sums, block, form, state, ahead);
}

void AddRecent(const float* kernel, TileRows x, int64_t count, const float* sum, float* out) {
  HWY_DYNAMIC_DISPATCH(AddRecent)(kernel, x, count, sum, out);
}

template <>
void StepChannels<float>(const TokenStep& step, int64_t groups, const TokenStep* next) {
  HWY_DYNAMIC_DISPATCH(StepChannelsF32)(step, groups, next);
}
template <>
void StepChannels<BF16>(const TokenStep& step, int64_t groups, const TokenStep* next) {
  HWY_DYNAMIC_DISPATCH(StepChannelsBF16)(step, groups, next);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
