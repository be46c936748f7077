#include "kernels/cpu/h3_convolution_weights.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/fft_conv.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/scratch.h"
#include "kernels/h3_gradient.h"

namespace hippodrome::cpu {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

float* Floats(const std::shared_ptr<void>& memory) { return static_cast<float*>(memory.get()); }

std::shared_ptr<void> AllocateFloats(int64_t count) {
  return AllocateZeroed(static_cast<size_t>(count * kFloat));
}

}  // namespace

HeadLoop LoopOn(ThreadPool& pool) {
  return [&pool](int64_t count, const std::function<void(int64_t)>& task) {
    pool.Run(count, [&](int64_t index, int) { task(index); });
  };
}

TileKernels::TileKernels(int64_t tiles, int64_t count)
    : tiles_(tiles), count_(count), taps_(AllocateFloats(tiles * TapFloats())) {}

int64_t TileKernels::TapFloats() const { return (count_ + 3) / 4 * 4 * kLanes; }

int64_t TileKernels::bytes() const {
  int64_t floats = tiles_ * TapFloats();
  for (const auto& [length, spectra] : spectra_) floats += tiles_ * length * 2 * kLanes;
  return floats * kFloat;
}

float* TileKernels::Taps(int64_t tile) const { return Floats(taps_) + tile * TapFloats(); }

const float* TileKernels::Spectra(ThreadPool& pool, const FftPlan* plan) const {
  if (plan == nullptr) return nullptr;
  const int64_t length = plan->length();
  std::shared_ptr<void>& spectra = spectra_[length];
  if (spectra != nullptr) return Floats(spectra);
  spectra = AllocateFloats(tiles_ * length * 2 * kLanes);
  pool.Run(tiles_, [&](int64_t tile, int) {
    float* scaled =
        ThreadScratch<float>(ScratchUse::kConvolution, length * kLanes + plan->work_floats());
    const int64_t points = std::min(count_, length) * kLanes;
    const float* taps = Taps(tile);
    for (int64_t i = 0; i < points; ++i) scaled[i] = taps[i] / static_cast<float>(length);
    std::fill(scaled + points, scaled + length * kLanes, 0.0f);
    TransformTile(*plan, scaled, Floats(spectra) + tile * length * 2 * kLanes,
                  scaled + length * kLanes);
  });
  return Floats(spectra);
}

TileKernel TileKernels::Tile(const FftPlan* plan, const float* spectra, int64_t tile) const {
  const float* spectrum = plan == nullptr ? nullptr : spectra + tile * plan->length() * 2 * kLanes;
  return {.taps = Taps(tile), .count = count_, .spectrum = spectrum};
}

H3ConvolutionWeights::H3ConvolutionWeights(ThreadPool& pool, const H3Parameters& p, int64_t longest)
    : layout_(p, longest),
      shift_(layout_.groups * layout_.channel_blocks, layout_.taps),
      diagonal_(layout_.groups * layout_.diagonal_tiles, longest) {
  assert(longest > 0);
  const HeadLoop loop = LoopOn(pool);
  std::vector<float> taps(static_cast<size_t>(layout_.d_model * layout_.taps));
  H3Taps(p, taps, loop);
  std::vector<float> kernels(static_cast<size_t>(layout_.heads * longest));
  H3Kernels(p, longest, kernels, loop);
  for (int64_t c = 0; c < layout_.d_model; ++c) {
    const auto [tile, lane] = layout_.TapsOf(c);
    float* to = shift_.Taps(tile) + lane;
    for (int64_t j = 0; j < layout_.taps; ++j) {
      to[j * kLanes] = taps[static_cast<size_t>(c * layout_.taps + j)];
    }
  }
  layout_.ForEachLane([&](int64_t tile, int64_t lane, int64_t head) {
    float* to = diagonal_.Taps(tile) + lane;
    const float* kernel = kernels.data() + head * longest;
    for (int64_t l = 0; l < longest; ++l) to[l * kLanes] = kernel[l];
  });
}

}  // namespace hippodrome::cpu
