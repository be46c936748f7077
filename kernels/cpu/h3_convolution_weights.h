// The constants of one H3 layer for whole sequences: its kernels as taps and as spectra.
#ifndef HIPPODROME_KERNELS_CPU_H3_CONVOLUTION_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_H3_CONVOLUTION_WEIGHTS_H_

#include <map>
#include <memory>

#include "kernels/cpu/fft_plans.h"
#include "kernels/cpu/h3_convolution_layout.h"
#include "kernels/cpu/h3_convolution_tile.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/head_loop.h"

namespace hippodrome::cpu {

// Loops on the threads of `pool`.
HeadLoop LoopOn(ThreadPool& pool);

// The kernels of one of a layer's two SSMs in tiles of 16 lanes. Not safe for concurrent use, but
// for Tile().
class TileKernels {
 public:
  TileKernels(int64_t tiles, int64_t count);

  int64_t tiles() const { return tiles_; }
  int64_t count() const { return count_; }
  int64_t bytes() const;
  // Taps [count, kLanes] of a tile.
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

class H3ConvolutionWeights final : public H3Weights {
 public:
  H3ConvolutionWeights(ThreadPool& pool, const H3Parameters& parameters, int64_t longest);

  int64_t bytes() const override { return shift_.bytes() + diagonal_.bytes(); }

  const H3ConvolutionLayout& layout() const { return layout_; }
  // Tiles as in the layout; skips are added to the first tap.
  const TileKernels& shift() const { return shift_; }
  const TileKernels& diagonal() const { return diagonal_; }

 private:
  H3ConvolutionLayout layout_;
  TileKernels shift_;
  TileKernels diagonal_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_CONVOLUTION_WEIGHTS_H_
