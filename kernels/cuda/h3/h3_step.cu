#include "kernels/cuda/h3/h3_step.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/h3/h3_lookahead.h"
#include "kernels/cuda/h3/h3_recurrence.h"
#include "kernels/cuda/h3/h3_step.cuh"

namespace hippodrome::cuda {
namespace {

// Blocks go through as many sequences as leaves one block for every place on the device.
int64_t SequencesPerBlock(const Device& device, int64_t groups, int64_t sequences) {
  const int64_t places = int64_t{device.multiprocessors()} * kStepBlocks;
  const int64_t parts = std::clamp<int64_t>(places / groups, 1, sequences);
  return std::min<int64_t>((sequences + parts - 1) / parts, kStepSequences);
}

template <typename T>
void Run(Device& device, const H3StepCall& call) {
  const int64_t sequences = call.slots.cols;
  const int64_t groups = (call.constants.view().d_model + kStepChannels - 1) / kStepChannels;
  const int64_t share = SequencesPerBlock(device, groups, sequences);
  const int64_t parts = (sequences + share - 1) / share;
  Launch(device, "h3_step", StepKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)),
          .threads = dim3(kStepThreads),
          .shared_bytes = kStepBytes},
         MakeOperands<T>(call, call.positions), sequences, share);
}

}  // namespace

void H3Step(Device& device, const H3StepCall& call) {
  const H3View& h3 = call.constants.view();
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  assert(call.qkv.cols == 3 * h3.d_model && call.o.cols == h3.d_model);
  if (call.state.looks_ahead()) return H3LookaheadStep(device, call);
  if (h3.head_dim != 1 || h3.taps != kStepTaps) return H3RecurrenceStep(device, call);
  call.qkv.dtype == DType::kBF16 ? Run<BF16>(device, call) : Run<float>(device, call);
}

}  // namespace hippodrome::cuda
