#include "kernels/cuda/conv/long_conv_toeplitz.cuh"

#include <cassert>

#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

template <typename T>
void Multiply(Device& device, const LongConvCall& call) {
  using Tile = ToeplitzTile<T>;
  static_assert(Tile::kKernelTerms ==
                KernelTerms(sizeof(T) == sizeof(BF16) ? DType::kBF16 : DType::kF32));
  const LongConvConstants& constants = call.constants;
  const int64_t head_channels = constants.channels() / constants.heads();
  const int64_t head_tiles = (head_channels + Tile::kChannels - 1) / Tile::kChannels;
  const int64_t time_tiles = (call.tokens() + Tile::kTimes - 1) / Tile::kTimes;
  constexpr int64_t kVector = 16 / sizeof(T);
  const ToeplitzArguments<T> arguments = {.view = MakeView<T>(call),
                                          .pairs = constants.pairs(),
                                          .length = static_cast<int>(constants.longest() + 1),
                                          .head_tiles = static_cast<int>(head_tiles),
                                          .aligned = head_channels % kVector == 0 &&
                                                     RowsAreAligned(call.u, kVector) &&
                                                     RowsAreAligned(call.y, kVector)};
  Launch(device, "long_conv_toeplitz", LongConvToeplitzKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(constants.heads() * head_tiles),
                         static_cast<unsigned>(call.sequences), static_cast<unsigned>(time_tiles)),
          .threads = dim3(Tile::kThreads),
          .shared_bytes = 2 * sizeof(typename Tile::Shared)},
         arguments);
}

}  // namespace

void LongConvToeplitz(Device& device, const LongConvCall& call) {
  if (call.u.dtype == DType::kBF16) {
    Multiply<BF16>(device, call);
  } else {
    Multiply<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
