#include "kernels/cpu/conv/tile_kernels.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/conv/fft_conv.h"

namespace hippodrome::cpu {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

float* Floats(const std::shared_ptr<void>& memory) { return static_cast<float*>(memory.get()); }

std::shared_ptr<void> AllocateFloats(int64_t count) {
  return AllocateZeroed(static_cast<size_t>(count * kFloat));
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
    TransformTile(*plan, scaled, Floats(spectra) + tile * length * 2 * kTileChannels,
                  scaled + length * kTileChannels);
  });
  return Floats(spectra);
}

TileKernel TileKernels::Tile(const FftPlan* plan, const float* spectra, int64_t tile) const {
  const float* spectrum =
      plan == nullptr ? nullptr : spectra + tile * plan->length() * 2 * kTileChannels;
  return {.taps = Taps(tile), .count = count_, .spectrum = spectrum};
}

}  // namespace hippodrome::cpu
