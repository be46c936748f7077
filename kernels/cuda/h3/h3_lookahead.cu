#include "kernels/cuda/h3/h3_lookahead.h"

#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sequence_parts.h"
#include "kernels/cuda/h3/h3_lookahead.cuh"

namespace hippodrome::cuda {
namespace {

template <typename T>
void RunStep(Device& device, const H3StepCall& call) {
  const int64_t rows = call.slots.cols;
  const int64_t groups = AheadGroups(call.constants.view().d_model);
  const int64_t parts = (rows + kAheadSequences - 1) / kAheadSequences;
  Launch(device, "h3_step", LookaheadKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)),
          .threads = dim3(kAheadThreads),
          .shared_bytes = sizeof(AheadShared<T>),
          .dependent = true},
         MakeStepOperands<T>(call), call.state.ahead(), rows, device.TakeExpected(groups * parts));
}

template <typename T>
void RunSettle(Device& device, const H3SequenceCall& call) {
  const int64_t groups = AheadGroups(call.constants.view().d_model);
  Launch(device, "h3_settle", SettleKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(call.parts.size())),
          .threads = dim3(kAheadThreads)},
         MakeOperands<T>(call), call.state.ahead(), CopyParts(device, call.parts));
}

}  // namespace

void H3LookaheadStep(Device& device, const H3StepCall& call) {
  assert(call.state.looks_ahead());
  call.qkv.dtype == DType::kBF16 ? RunStep<BF16>(device, call) : RunStep<float>(device, call);
}

void H3Settle(Device& device, const H3SequenceCall& call) {
  assert(call.state.looks_ahead());
  call.qkv.dtype == DType::kBF16 ? RunSettle<BF16>(device, call) : RunSettle<float>(device, call);
}

}  // namespace hippodrome::cuda
