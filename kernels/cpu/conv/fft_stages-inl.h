// The stages of a transform of tiles: first and last between rows and tiles, the others in place.
// Included once per target.
#if defined(HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#undef HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#else
#define HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#endif

#include "kernels/cpu/conv/fft_butterfly-inl.h"
#include "kernels/cpu/conv/time_series.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// w^(j L / 8) = exp(i pi j / 16).
constexpr float kWeights[8][2] = {{1.0f, 0.0f},
                                  {0.980785280f, 0.195090322f},
                                  {0.923879533f, 0.382683432f},
                                  {0.831469612f, 0.555570233f},
                                  {0.707106781f, 0.707106781f},
                                  {0.555570233f, 0.831469612f},
                                  {0.382683432f, 0.923879533f},
                                  {0.195090322f, 0.980785280f}};

// The first stage, from real rows: weights x by w and scatters into eight blocks, for each tile of
// its width. Rows from x.tokens on count as zeros; kWhole: there are none.
template <bool kWhole>
HWY_INLINE void FirstStage(const FftPlan& plan, const TimeSeries& x, float* work) {
  const int64_t points = plan.length() / 8;
  const int64_t block = plan.block_stride();
  const float* twiddle = plan.stages().front().twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 16) {
    for (int64_t c = 0; c < x.width; c += kLanes) {
      Complex z[8];
      HWY_UNROLL(8)
      for (int j = 0; j < 8; ++j) {
        const int64_t t = j * points + p;
        const V value = kWhole || t < x.tokens ? hn::LoadU(D(), x.Row(t) + c) : hn::Zero(D());
        z[j] = {hn::Mul(value, hn::Set(D(), kWeights[j][0])),
                hn::Mul(value, hn::Set(D(), kWeights[j][1]))};
      }
      Butterfly8<false>(z);
      float* to = work + c / kTileChannels * plan.work_floats() + p * kPoint + c % kTileChannels;
      HWY_UNROLL(8)
      for (int k = 0; k < 8; ++k) {
        Store(Multiply(z[k], Broadcast(twiddle + 2 * k)), to + k * block);
      }
    }
  }
}

// Undoes FirstStage: gathers the eight blocks, weights by conj(w) and keeps the real part.
template <bool kWhole>
HWY_INLINE void LastStage(const FftPlan& plan, const float* work, const TimeSeries& y) {
  const int64_t points = plan.length() / 8;
  const int64_t block = plan.block_stride();
  const float* twiddle = plan.stages().front().twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 16) {
    for (int64_t c = 0; c < y.width; c += kLanes) {
      const float* from =
          work + c / kTileChannels * plan.work_floats() + p * kPoint + c % kTileChannels;
      Complex z[8];
      HWY_UNROLL(8)
      for (int k = 0; k < 8; ++k) {
        z[k] = MultiplyConjugate(Load(from + k * block), Broadcast(twiddle + 2 * k));
      }
      Butterfly8<true>(z);
      HWY_UNROLL(8)
      for (int j = 0; j < 8; ++j) {
        const int64_t t = j * points + p;
        if (!kWhole && t >= y.tokens) break;
        const V re = hn::Mul(z[j].re, hn::Set(D(), kWeights[j][0]));
        hn::StoreU(hn::MulAdd(z[j].im, hn::Set(D(), kWeights[j][1]), re), D(), y.Row(t) + c);
      }
    }
  }
}

template <int kRadix>
HWY_INLINE void ForwardStage(const FftStage& stage, float* data) {
  const int64_t points = stage.length / kRadix;
  const float* twiddle = stage.twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 2 * (kRadix - 1)) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      float* at = data + p * kPoint + lane;
      Complex z[kRadix];
      HWY_UNROLL(8)
      for (int j = 0; j < kRadix; ++j) z[j] = Load(at + j * points * kPoint);
      Butterfly<false>(z);
      Store(z[0], at);
      HWY_UNROLL(8)
      for (int k = 1; k < kRadix; ++k) {
        Store(Multiply(z[k], Broadcast(twiddle + 2 * (k - 1))), at + k * points * kPoint);
      }
    }
  }
}

template <int kRadix>
HWY_INLINE void InverseStage(const FftStage& stage, float* data) {
  const int64_t points = stage.length / kRadix;
  const float* twiddle = stage.twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 2 * (kRadix - 1)) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      float* at = data + p * kPoint + lane;
      Complex z[kRadix];
      z[0] = Load(at);
      HWY_UNROLL(8)
      for (int k = 1; k < kRadix; ++k) {
        z[k] = MultiplyConjugate(Load(at + k * points * kPoint), Broadcast(twiddle + 2 * (k - 1)));
      }
      Butterfly<true>(z);
      HWY_UNROLL(8)
      for (int j = 0; j < kRadix; ++j) Store(z[j], at + j * points * kPoint);
    }
  }
}

HWY_INLINE void Forward(const FftStage& stage, float* data) {
  stage.radix == 8 ? ForwardStage<8>(stage, data) : ForwardStage<4>(stage, data);
}

HWY_INLINE void Inverse(const FftStage& stage, float* data) {
  stage.radix == 8 ? InverseStage<8>(stage, data) : InverseStage<4>(stage, data);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
