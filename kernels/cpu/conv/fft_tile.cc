// The work of fft.h on tiles, for every vector width.
#include "kernels/cpu/conv/fft.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/conv/fft_stages-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// What is done with the spectrum z of eight neighbours, lanes [lane, lane + kLanes), between the
// last forward stage and the first inverse one. Pointers are to the first of the neighbours.

// z k. A point of the kernel's spectrum has kFloats floats: each channel has its own, or all share
// one.
constexpr int64_t kOwn = kPoint;
constexpr int64_t kShared = 2;
template <int64_t kFloats>
struct Product {
  const float* kernel;

  Product At(int64_t point) const { return {kernel + point * kFloats}; }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      if constexpr (kFloats == kShared) {
        z[k] = Multiply(z[k], Broadcast(kernel + k * kFloats));
      } else {
        z[k] = Multiply(z[k], Load(kernel + lane + k * kFloats));
      }
    }
  }
};

// The same, and z itself in `kept`.
struct KeptProduct {
  const float* kernel;
  float* kept;

  KeptProduct At(int64_t point) const { return {kernel + point * kPoint, kept + point * kPoint}; }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      Store(z[k], kept + lane + k * kPoint);
      z[k] = Multiply(z[k], Load(kernel + lane + k * kPoint));
    }
  }
};

// z conj(k), and sums += z conj(kept).
struct Correlation {
  const float* kernel;
  const float* kept;
  float* sums;

  Correlation At(int64_t point) const {
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

HWY_INLINE void LoadPoints(const float* from, Complex (&z)[8]) {
  HWY_UNROLL(8)
  for (int j = 0; j < 8; ++j) z[j] = Load(from + j * kPoint);
}

HWY_INLINE void StorePoints(const Complex (&z)[8], float* to) {
  HWY_UNROLL(8)
  for (int j = 0; j < 8; ++j) Store(z[j], to + j * kPoint);
}

// Stages `stage` and below of one block, forward, the work on the spectrum, and back. Depth first,
// so that small blocks stay in the nearest cache.
template <typename Work>
void WorkOnBlock(const FftStage* stage, float* data, Work spectrum) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(data + lane, z);
      Butterfly8<false>(z);
      spectrum(z, lane);
      Butterfly8<true>(z);
      StorePoints(z, data + lane);
    }
    return;
  }
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    WorkOnBlock(stage + 1, data + at * kPoint, spectrum.At(at));
  }
  Inverse(*stage, data);
}

template <bool kWhole, typename Work>
HWY_INLINE void WorkOnTiles(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                            Work spectrum, float* work) {
  FirstStage<kWhole>(plan, x, work);
  const int64_t points = plan.length() / 8;
  const int64_t blocks = x.width / kTileChannels * 8;
  for (int64_t k = 0; k < blocks; ++k) {
    WorkOnBlock(&plan.stages()[1], work + k * plan.block_stride(), spectrum.At(k % 8 * points));
  }
  LastStage<kWhole>(plan, work, y);
}

// y = what `spectrum` makes of x.
template <typename Work>
HWY_INLINE void WorkOnSeries(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                             Work spectrum, float* work) {
  x.tokens == plan.length() ? WorkOnTiles<true>(plan, x, y, spectrum, work)
                            : WorkOnTiles<false>(plan, x, y, spectrum, work);
}

void ConvolveTile(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                  float* kept, float* work) {
  kept == nullptr ? WorkOnSeries(plan, x, y, Product<kOwn>{k}, work)
                  : WorkOnSeries(plan, x, y, KeptProduct{k, kept}, work);
}

void ConvolveTiles(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                   float* work) {
  WorkOnSeries(plan, x, y, Product<kShared>{k}, work);
}

void CorrelateTile(const FftPlan& plan, const float* k, const float* x, const TimeSeries& dy,
                   const TimeSeries& dx, float* sums, float* work) {
  WorkOnSeries(plan, dy, dx, Correlation{k, x, sums}, work);
}

// Stages `stage` and below of one block, forward.
void TransformBlock(const FftStage* stage, float* data, float* spectrum) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(data + lane, z);
      Butterfly8<false>(z);
      StorePoints(z, spectrum + lane);
    }
    return;
  }
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    TransformBlock(stage + 1, data + at * kPoint, spectrum + at * kPoint);
  }
}

void TransformTile(const FftPlan& plan, const TimeSeries& x, float* spectrum, float* work) {
  x.tokens == plan.length() ? FirstStage<true>(plan, x, work) : FirstStage<false>(plan, x, work);
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    TransformBlock(&plan.stages()[1], work + k * plan.block_stride(),
                   spectrum + k * points * kPoint);
  }
}

// The inverse of stages `stage` and below.
void InverseBlock(const FftStage* stage, const float* spectrum, float* data) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(spectrum + lane, z);
      Butterfly8<true>(z);
      StorePoints(z, data + lane);
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

HWY_EXPORT(TransformTile);
HWY_EXPORT(InverseTile);
HWY_EXPORT(ConvolveTile);
HWY_EXPORT(ConvolveTiles);
HWY_EXPORT(CorrelateTile);

void TransformTile(const FftPlan& plan, const TimeSeries& x, float* spectrum, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformTile)(plan, x, spectrum, work);
}

void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work) {
  HWY_DYNAMIC_DISPATCH(InverseTile)(plan, spectrum, y, work);
}

void ConvolveTile(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                  float* kept, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTile)(plan, k, x, y, kept, work);
}

void ConvolveTiles(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                   float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTiles)(plan, k, x, y, work);
}

void CorrelateTile(const FftPlan& plan, const float* k, const float* x, const TimeSeries& dy,
                   const TimeSeries& dx, float* sums, float* work) {
  HWY_DYNAMIC_DISPATCH(CorrelateTile)(plan, k, x, dy, dx, sums, work);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
