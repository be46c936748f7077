#include "kernels/cpu/conv/tile_convolution.h"

#include <algorithm>

#include "kernels/cpu/conv/direct_conv.h"
#include "kernels/cpu/conv/fft_gradient.h"

namespace hippodrome::cpu {
namespace {

TimeSeries Tile(const float* first, int64_t tokens) {
  return {const_cast<float*>(first), kTileChannels, tokens, kTileChannels};
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
  ConvolveKept(*plan_, kernel.spectrum, Tile(x, tokens_), Tile(y, tokens_), kept, work);
}

void TileConvolution::Correlate(const TileKernel& kernel, const float* kept, const float* dy,
                                float* dx, float* sums, float* work) const {
  if (plan_ == nullptr) {
    const float* series = Pad(dy, tokens_, work);
    CorrelateDirect(kernel.taps, kernel.count, series, tokens_, dx);
    return AddCorrelation(kept + kSeriesPadding * kTileChannels, series, tokens_, count_, sums);
  }
  CorrelateKept(*plan_, kernel.spectrum, kept, Tile(dy, tokens_), Tile(dx, tokens_), sums, work);
}

void TileConvolution::TakeSums(const float* sums, float* dk, float* work) const {
  const int64_t count = std::min(count_, tokens_);
  if (plan_ == nullptr) {
    std::copy_n(sums, count * kTileChannels, dk);
    return;
  }
  InverseTile(*plan_, sums, Tile(dk, count), work);
  const float scale = 1.0f / static_cast<float>(plan_->length());
  for (int64_t i = 0; i < count * kTileChannels; ++i) dk[i] *= scale;
}

}  // namespace hippodrome::cpu
