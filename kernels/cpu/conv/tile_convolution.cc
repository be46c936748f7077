#include "kernels/cpu/conv/tile_convolution.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/direct_conv.h"

namespace hippodrome::cpu {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

float* Floats(const std::shared_ptr<void>& memory) { return static_cast<float*>(memory.get()); }

std::shared_ptr<void> AllocateFloats(int64_t count) {
  return AllocateZeroed(static_cast<size_t>(count * kFloat));
}

// Returns the token 0 of a padded copy.
float* Pad(const float* x, int64_t tokens, float* memory) {
  constexpr int64_t kPadding = kSeriesPadding * kTileChannels;
  std::fill_n(memory, kPadding, 0.0f);
  std::copy_n(x, tokens * kTileChannels, memory + kPadding);
  std::fill_n(memory + kPadding + tokens * kTileChannels, kPadding, 0.0f);
  return memory + kPadding;
}

}  // namespace

TileKernels::TileKernels(int64_t tiles, int64_t count)
    : tiles_(tiles), count_(count), taps_(AllocateFloats(tiles * TapFloats())) {}

int64_t TileKernels::TapFloats() const { return (count_ + 3) / 4 * 4 * kTileChannels; }

int64_t TileKernels::bytes() const {
  int64_t floats = tiles_ * TapFloats();
  for (const auto& [length, spectra] : spectra_) floats += tiles_ * length * 2 * kTileChannels;
  return floats * kFloat;
}

float* TileKernels::Taps(int64_t tile) const { return Floats(taps_) + tile * TapFloats(); }

const float* TileKernels::Spectra(ThreadPool& pool, const FftPlan* plan) const {
  if (plan == nullptr) return nullptr;
  const int64_t length = plan->length();
  std::shared_ptr<void>& spectra = spectra_[length];
  if (spectra != nullptr) return Floats(spectra);
  spectra = AllocateFloats(tiles_ * length * 2 * kTileChannels);
  pool.Run(tiles_, [&](int64_t tile, int) {
    float* scaled = ThreadScratch<float>(ScratchUse::kConvolution,
                                         length * kTileChannels + plan->work_floats());
    const int64_t points = std::min(count_, length) * kTileChannels;
    const float* taps = Taps(tile);
    for (int64_t i = 0; i < points; ++i) scaled[i] = taps[i] / static_cast<float>(length);
    std::fill(scaled + points, scaled + length * kTileChannels, 0.0f);
    TransformTile(*plan, TileSeries(scaled, length),
                  Floats(spectra) + tile * length * 2 * kTileChannels,
                  scaled + length * kTileChannels);
  });
  return Floats(spectra);
}

TileKernel TileKernels::Tile(const FftPlan* plan, const float* spectra, int64_t tile) const {
  const float* spectrum =
      plan == nullptr ? nullptr : spectra + tile * plan->length() * 2 * kTileChannels;
  return {.taps = Taps(tile), .count = count_, .spectrum = spectrum};
}

int64_t TileConvolution::kept_floats() const {
  return plan_ == nullptr ? (tokens_ + 2 * kSeriesPadding) * kTileChannels
                          : plan_->length() * 2 * kTileChannels;
}

int64_t TileConvolution::sums_floats() const {
  return plan_ == nullptr ? std::min(count_, tokens_) * kTileChannels
                          : plan_->length() * 2 * kTileChannels;
}

int64_t TileConvolution::work_floats() const {
  return plan_ == nullptr ? kept_floats() : plan_->work_floats();
}

void TileConvolution::Convolve(const TileKernel& kernel, const float* x, float* y, float* kept,
                               float* work) const {
  if (plan_ == nullptr) {
    const float* series = Pad(x, tokens_, kept == nullptr ? work : kept);
    return ConvolveDirect(kernel.taps, kernel.count, series, tokens_, y);
  }
  ConvolveTile(*plan_, kernel.spectrum, TileSeries(x, tokens_), TileSeries(y, tokens_), kept, work);
}

void TileConvolution::Keep(const float* x, float* kept, float* work) const {
  if (plan_ == nullptr) {
    Pad(x, tokens_, kept);
    return;
  }
  TransformTile(*plan_, TileSeries(x, tokens_), kept, work);
}

void TileConvolution::Correlate(const TileKernel& kernel, const float* kept, const float* dy,
                                float* dx, float* sums, float* work) const {
  if (plan_ == nullptr) {
    const float* series = Pad(dy, tokens_, work);
    CorrelateDirect(kernel.taps, kernel.count, series, tokens_, dx);
    return AddCorrelation(kept + kSeriesPadding * kTileChannels, series, tokens_, count_, sums);
  }
  CorrelateTile(*plan_, kernel.spectrum, kept, TileSeries(dy, tokens_), TileSeries(dx, tokens_),
                sums, work);
}

void TileConvolution::TakeSums(const float* sums, float* dk, float* work) const {
  const int64_t count = std::min(count_, tokens_);
  if (plan_ == nullptr) {
    std::copy_n(sums, count * kTileChannels, dk);
    return;
  }
  InverseTile(*plan_, sums, TileSeries(dk, count), work);
  const float scale = 1.0f / static_cast<float>(plan_->length());
  for (int64_t i = 0; i < count * kTileChannels; ++i) dk[i] *= scale;
}

}  // namespace hippodrome::cpu
