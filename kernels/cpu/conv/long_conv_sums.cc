#include "kernels/cpu/conv/long_conv_sums.h"

#include <algorithm>

namespace hippodrome::cpu {

LongConvKernelGradients::LongConvKernelGradients(const LongConvTiling& tiling, int64_t longest)
    : tiling_(tiling),
      longest_(longest),
      lanes_(static_cast<size_t>(tiling.kernel_tiles() * longest * kTileChannels)) {}

void LongConvKernelGradients::Add(int64_t kernel_tile, std::span<const float> dk) {
  double* sums = lanes_.data() + kernel_tile * longest_ * kTileChannels;
  for (size_t i = 0; i < dk.size(); ++i) sums[i] += double{dk[i]};
}

std::vector<double> LongConvKernelGradients::OfHeads() const {
  std::vector<double> heads(static_cast<size_t>(tiling_.heads * longest_));
  const double* sums = lanes_.data();
  for (int64_t tile = 0; tile < tiling_.kernel_tiles(); ++tile, sums += longest_ * kTileChannels) {
    for (int64_t lane = 0; lane < kTileChannels; ++lane) {
      const int64_t head = tiling_.Head(tile, lane);
      if (head < 0) break;
      double* to = heads.data() + head * longest_;
      for (int64_t l = 0; l < longest_; ++l) to[l] += sums[l * kTileChannels + lane];
    }
  }
  return heads;
}

void LongConvKernelGradients::Zero() { std::fill(lanes_.begin(), lanes_.end(), 0.0); }

}  // namespace hippodrome::cpu
