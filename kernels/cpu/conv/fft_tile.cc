// TransformTile, ConvolveTile and ConvolveTiles for every vector width.
#include "kernels/cpu/conv/fft_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/conv/fft_stages-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// Floats of a point of a spectrum that each channel has for itself, or that all share.
constexpr int64_t kOwn = kPoint;
constexpr int64_t kShared = 2;

template <int64_t kSpectrum>
HWY_INLINE Complex LoadSpectrum(const float* point, int64_t lane) {
  if constexpr (kSpectrum == kShared) return Broadcast(point);
  return Load(point + lane);
}

// Eight neighbours: the last forward stage, the product with the spectrum, the first inverse stage.
template <int64_t kSpectrum>
HWY_INLINE void Product8(float* data, const float* spectrum) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    Complex z[8];
    HWY_UNROLL(8)
    for (int j = 0; j < 8; ++j) z[j] = Load(data + lane + j * kPoint);
    Butterfly8<false>(z);
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      z[k] = Multiply(z[k], LoadSpectrum<kSpectrum>(spectrum + k * kSpectrum, lane));
    }
    Butterfly8<true>(z);
    HWY_UNROLL(8)
    for (int j = 0; j < 8; ++j) Store(z[j], data + lane + j * kPoint);
  }
}

// The last forward stage of eight neighbours, written to `spectrum`.
HWY_INLINE void LastForward8(const float* data, float* spectrum) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    Complex z[8];
    HWY_UNROLL(8)
    for (int j = 0; j < 8; ++j) z[j] = Load(data + lane + j * kPoint);
    Butterfly8<false>(z);
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) Store(z[k], spectrum + lane + k * kPoint);
  }
}

// Stages `stage` and below of one block, forward.
void TransformBlock(const FftStage* stage, float* data, float* spectrum) {
  if (stage->length == 8) return LastForward8(data, spectrum);
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    TransformBlock(stage + 1, data + at * kPoint, spectrum + at * kPoint);
  }
}

// Stages `stage` and below of one block, forward, times the spectrum, and back. Depth first, so
// that small blocks stay in the nearest cache.
template <int64_t kSpectrum>
void ConvolveBlock(const FftStage* stage, float* data, const float* spectrum) {
  if (stage->length == 8) return Product8<kSpectrum>(data, spectrum);
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    ConvolveBlock<kSpectrum>(stage + 1, data + at * kPoint, spectrum + at * kSpectrum);
  }
  Inverse(*stage, data);
}

// The columns of one tile as all times of a transform.
HWY_INLINE TimeSeries Column(const FftPlan& plan, const float* first, int64_t step) {
  return {const_cast<float*>(first), step, plan.length(), kTileChannels};
}

void TransformTile(const FftPlan& plan, const float* x, float* spectrum, float* work) {
  FirstStage<true>(plan, Column(plan, x, kTileChannels), work);
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    TransformBlock(&plan.stages()[1], work + k * plan.block_stride(),
                   spectrum + k * points * kPoint);
  }
}

template <int64_t kSpectrum, bool kWhole>
HWY_INLINE void Convolve(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                         const TimeSeries& y, float* work) {
  FirstStage<kWhole>(plan, x, work);
  const int64_t points = plan.length() / 8;
  const int64_t blocks = x.width / kTileChannels * 8;
  for (int64_t k = 0; k < blocks; ++k) {
    ConvolveBlock<kSpectrum>(&plan.stages()[1], work + k * plan.block_stride(),
                             spectrum + k % 8 * points * kSpectrum);
  }
  LastStage<kWhole>(plan, work, y);
}

void ConvolveTile(const FftPlan& plan, const float* spectrum, const float* x, int64_t x_stride,
                  float* y, int64_t y_stride, float* work) {
  Convolve<kOwn, true>(plan, spectrum, Column(plan, x, x_stride), Column(plan, y, y_stride), work);
}

void ConvolveTiles(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                   const TimeSeries& y, float* work) {
  x.tokens == plan.length() ? Convolve<kShared, true>(plan, spectrum, x, y, work)
                            : Convolve<kShared, false>(plan, spectrum, x, y, work);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(TransformTile);
HWY_EXPORT(ConvolveTile);
HWY_EXPORT(ConvolveTiles);

void TransformTile(const FftPlan& plan, const float* x, float* spectrum, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformTile)(plan, x, spectrum, work);
}

void ConvolveTile(const FftPlan& plan, const float* spectrum, const float* x, int64_t x_stride,
                  float* y, int64_t y_stride, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTile)(plan, spectrum, x, x_stride, y, y_stride, work);
}

void ConvolveTiles(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                   const TimeSeries& y, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTiles)(plan, spectrum, x, y, work);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
