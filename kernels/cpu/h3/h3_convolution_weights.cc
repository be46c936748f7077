#include "kernels/cpu/h3/h3_convolution_weights.h"

#include <cassert>
#include <vector>

#include "kernels/ssm/h3_ssm.h"

namespace hippodrome::cpu {

H3ConvolutionKernels::H3ConvolutionKernels(ThreadPool& pool, const H3Parameters& p, int64_t longest)
    : layout_(p, longest),
      shift_(layout_.groups * layout_.channel_blocks, layout_.taps),
      diagonal_(layout_.groups * layout_.diagonal_tiles, longest) {
  assert(longest > 0);
  const HeadLoop loop = pool.Loop();
  const std::vector<float> taps = H3TapsWithSkips(p, loop);
  const std::vector<float> kernels = H3KernelsWithSkips(p, longest, loop);
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
