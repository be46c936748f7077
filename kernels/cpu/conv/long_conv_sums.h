// The gradients of the kernels of a long convolution, summed over sequences.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_SUMS_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_SUMS_H_

#include <span>
#include <vector>

#include "kernels/cpu/conv/long_conv_tiling.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

class LongConvKernelGradients final : public LongConvGradients {
 public:
  LongConvKernelGradients(const LongConvTiling& tiling, int64_t longest);

  // Adds what some channels of a kernel tile sum to, [tokens, kTileChannels], tokens <= longest.
  // Different kernel tiles may be added to at the same time.
  void Add(int64_t kernel_tile, std::span<const float> dk);
  // d loss / d K of every head, [H, longest].
  std::vector<double> OfHeads() const;
  void Zero();

 private:
  LongConvTiling tiling_;
  int64_t longest_;
  std::vector<double> lanes_;  // [kernel tiles, longest, kTileChannels]
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_SUMS_H_
