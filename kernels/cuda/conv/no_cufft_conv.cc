// In place of cufft_conv.cu in builds without cuFFT, as under the emulator.
#include "kernels/cuda/conv/gated_conv.h"

namespace hippodrome::cuda {

std::unique_ptr<GatedConv> MakeCufftGatedConv(Device&, std::span<const double>, int64_t, int64_t) {
  return nullptr;
}

}  // namespace hippodrome::cuda
