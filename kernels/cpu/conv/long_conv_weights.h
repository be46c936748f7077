// The kernels of a convolution whose channels share them by heads.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_

#include <map>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/conv/fft_plan.h"
#include "kernels/cpu/conv/long_conv_tiling.h"
#include "kernels/cpu/conv/tile_kernels.h"
#include "kernels/ssm/head_loop.h"

namespace hippodrome::cpu {

// Kernels of H heads with their skip, K[0] + D, K[1], ..., in each of the forms that products,
// transforms of heads, and tiles of lanes take. Forms are made at their first use: not safe for
// concurrent use.
class LongConvKernels final : public LongConvWeights {
 public:
  LongConvKernels(const LongConvParameters& parameters, int64_t longest,
                  const HeadLoop& loop = OneAfterAnother);

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override;

  const LongConvTiling& tiling() const { return tiling_; }
  int64_t channels() const { return tiling_.channels; }
  int64_t heads() const { return tiling_.heads; }
  // The taps of one head as ToeplitzProduct() reads them: the kernel backwards from here, zeros
  // after it.
  const float* Taps(int64_t head) const;
  // The spectra of all heads in the order of FftPlan::Spectrum(), [H, plan.length(), re | im],
  // computed at the first use of a length.
  const float* Spectra(const FftPlan& plan) const;
  // By kernel tiles of tiling().
  const TileKernels& Tiles() const;

 private:
  int64_t TapsOfHead() const;

  LongConvTiling tiling_;
  int64_t longest_;
  std::vector<float> taps_;
  mutable std::map<int64_t, std::vector<float>> spectra_;  // by the length of their transform
  mutable std::shared_ptr<TileKernels> tiles_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_
