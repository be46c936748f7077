#include "kernels/cpu/conv/fft_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft_gradient.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/conv/fft_stages-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// The work on eight neighbours between the last forward stage and the first inverse one, lanes
// [lane, lane + kLanes), for each of the operations. Pointers are to the first of the neighbours.
template <bool kKeep>
struct ConvolveSpectrum {
  const float* kernel;
  float* kept;

  ConvolveSpectrum At(int64_t point) const {
    return {kernel + point * kPoint, kKeep ? kept + point * kPoint : nullptr};
  }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      if constexpr (kKeep) Store(z[k], kept + lane + k * kPoint);
      z[k] = Multiply(z[k], Load(kernel + lane + k * kPoint));
    }
  }
};

struct CorrelateSpectrum {
  const float* kernel;
  const float* kept;
  float* sums;

  CorrelateSpectrum At(int64_t point) const {
    return {kernel + point * kPoint, kept + point * kPoint, sums + point * kPoint};
  }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      const int64_t at = lane + k * kPoint;
      Store(Add(Load(sums + at), MultiplyConjugate(z[k], Load(kept + at))), sums + at);
      z[k] = MultiplyConjugate(z[k], Load(kernel + at));
    }
  }
};

template <typename Product>
HWY_INLINE void Product8(float* data, const Product& product) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    Complex z[8];
    HWY_UNROLL(8)
    for (int j = 0; j < 8; ++j) z[j] = Load(data + lane + j * kPoint);
    Butterfly8<false>(z);
    product(z, lane);
    Butterfly8<true>(z);
    HWY_UNROLL(8)
    for (int j = 0; j < 8; ++j) Store(z[j], data + lane + j * kPoint);
  }
}

// Stages `stage` and below of one block, forward, the product, and back, depth first.
template <typename Product>
void ProductBlock(const FftStage* stage, float* data, const Product& product) {
  if (stage->length == 8) return Product8(data, product);
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    ProductBlock(stage + 1, data + at * kPoint, product.At(at));
  }
  Inverse(*stage, data);
}

template <bool kWhole, typename Product>
HWY_INLINE void Transformed(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                            const Product& product, float* work) {
  FirstStage<kWhole>(plan, x, work);
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    ProductBlock(&plan.stages()[1], work + k * plan.block_stride(), product.At(k * points));
  }
  LastStage<kWhole>(plan, work, y);
}

template <typename Product>
HWY_INLINE void Transformed(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                            const Product& product, float* work) {
  x.tokens == plan.length() ? Transformed<true>(plan, x, y, product, work)
                            : Transformed<false>(plan, x, y, product, work);
}

void ConvolveKept(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                  const TimeSeries& y, float* kept, float* work) {
  kept == nullptr ? Transformed(plan, x, y, ConvolveSpectrum<false>{spectrum, nullptr}, work)
                  : Transformed(plan, x, y, ConvolveSpectrum<true>{spectrum, kept}, work);
}

void CorrelateKept(const FftPlan& plan, const float* spectrum, const float* kept,
                   const TimeSeries& dy, const TimeSeries& dx, float* sums, float* work) {
  Transformed(plan, dy, dx, CorrelateSpectrum{spectrum, kept, sums}, work);
}

// The inverse of stages `stage` and below.
void InverseBlock(const FftStage* stage, const float* spectrum, float* data) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      HWY_UNROLL(8)
      for (int k = 0; k < 8; ++k) z[k] = Load(spectrum + lane + k * kPoint);
      Butterfly8<true>(z);
      HWY_UNROLL(8)
      for (int j = 0; j < 8; ++j) Store(z[j], data + lane + j * kPoint);
    }
    return;
  }
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    InverseBlock(stage + 1, spectrum + at * kPoint, data + at * kPoint);
  }
  Inverse(*stage, data);
}

void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work) {
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    InverseBlock(&plan.stages()[1], spectrum + k * points * kPoint, work + k * plan.block_stride());
  }
  LastStage<false>(plan, work, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ConvolveKept);
HWY_EXPORT(CorrelateKept);
HWY_EXPORT(InverseTile);

void ConvolveKept(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                  const TimeSeries& y, float* kept, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveKept)(plan, spectrum, x, y, kept, work);
}

void CorrelateKept(const FftPlan& plan, const float* spectrum, const float* kept,
                   const TimeSeries& dy, const TimeSeries& dx, float* sums, float* work) {
  HWY_DYNAMIC_DISPATCH(CorrelateKept)(plan, spectrum, kept, dy, dx, sums, work);
}

void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work) {
  HWY_DYNAMIC_DISPATCH(InverseTile)(plan, spectrum, y, work);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
