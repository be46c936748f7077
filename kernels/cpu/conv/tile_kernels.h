// The kernels of many channels in tiles, as taps and as spectra.
#ifndef HIPPODROME_KERNELS_CPU_CONV_TILE_KERNELS_H_
#define HIPPODROME_KERNELS_CPU_CONV_TILE_KERNELS_H_

#include <map>
#include <memory>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/tile_convolution.h"

namespace hippodrome::cpu {

// Kernels in tiles of 16 lanes. Not safe for concurrent use, but for Tile().
class TileKernels {
 public:
  TileKernels(int64_t tiles, int64_t count);

  int64_t tiles() const { return tiles_; }
  int64_t count() const { return count_; }
  int64_t bytes() const;
  // Taps [count, kTileChannels] of a tile.
  float* Taps(int64_t tile) const;
  // The spectra for `plan`, computed at its first use; null for a null plan.
  const float* Spectra(ThreadPool& pool, const FftPlan* plan) const;
  // REQUIRES: spectra of Spectra() with this plan.
  TileKernel Tile(const FftPlan* plan, const float* spectra, int64_t tile) const;

 private:
  int64_t TapFloats() const;

  int64_t tiles_;
  int64_t count_;
  std::shared_ptr<void> taps_;
  mutable std::map<int64_t, std::shared_ptr<void>> spectra_;  // by the length of the transform
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_TILE_KERNELS_H_
