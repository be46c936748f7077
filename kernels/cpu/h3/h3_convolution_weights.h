// The constants of one H3 layer for whole sequences: its kernels as taps and as spectra.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/tile_kernels.h"
#include "kernels/cpu/h3/h3_convolution_layout.h"

namespace hippodrome::cpu {

class H3ConvolutionKernels final : public H3ConvolutionWeights {
 public:
  H3ConvolutionKernels(ThreadPool& pool, const H3Parameters& parameters, int64_t longest);

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

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_
