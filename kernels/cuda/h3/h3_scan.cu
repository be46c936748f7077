#include "kernels/cuda/h3/h3_scan.cuh"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/h3/h3_sequence.h"

namespace hippodrome::cuda {
namespace {

// Blocks that each multiprocessor gets in turn, if there are sequences enough: more balance the
// load, fewer make the matrices of the channels less often.
constexpr int64_t kBlocksInTurn = 4;

template <typename T>
void Scan(Device& device, const H3SequenceCall& call) {
  const ScanArguments<T> arguments = {
      .layer = call.constants.view(),
      .state = call.state.view<T>(),
      .qkv = static_cast<const T*>(call.qkv.data),
      .qkv_stride = call.qkv.stride,
      .o = static_cast<T*>(call.o.data),
      .o_stride = call.o.stride,
      .slots = static_cast<const int32_t*>(call.slots.data),
      .sequences = static_cast<int32_t>(call.sequences()),
      .tokens = static_cast<int32_t>(call.tokens()),
      .aligned = RowsAreAligned(call.qkv, 8) && RowsAreAligned(call.o, 8),
      .start = call.start};
  constexpr int64_t kChannels = ScanShared<T>::kChannels;
  const int64_t groups = (arguments.layer.d_model + kChannels - 1) / kChannels;
  const int64_t wanted = (kBlocksInTurn * device.multiprocessors() + groups - 1) / groups;
  const int64_t splits = std::min({wanted, call.sequences(), int64_t{65535}});
  Launch(device, "h3_scan", H3ScanKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(splits)),
          .threads = dim3(ScanShared<T>::kThreads),
          .shared_bytes = sizeof(ScanShared<T>)},
         arguments);
}

}  // namespace

bool CanScan(const H3Constants& constants, size_t shared_bytes) {
  const size_t needed = constants.activations() == DType::kBF16 ? sizeof(ScanShared<BF16>)
                                                                : sizeof(ScanShared<float>);
  return constants.view().head_dim == 1 && constants.view().taps <= kHistory &&
         needed <= shared_bytes;
}

void H3Scan(Device& device, const H3SequenceCall& call) {
  assert(CanScan(call.constants, device.shared_bytes()));
  assert(call.qkv.cols == 3 * int64_t{call.constants.view().d_model});
  if (call.constants.activations() == DType::kBF16) {
    Scan<BF16>(device, call);
  } else {
    Scan<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
