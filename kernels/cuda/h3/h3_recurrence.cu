#include "kernels/cuda/h3/h3_recurrence.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/h3/h3_recurrence.cuh"
#include "kernels/cuda/h3/h3_sequence.h"

namespace hippodrome::cuda {
namespace {

// Tokens that a mode stays in registers for.
constexpr int kSequenceSteps = 16;

template <typename T, int kSteps>
void Run(Device& device, const char* operation, RecurrenceArguments<T> arguments,
         int64_t sequences) {
  const H3View& h3 = arguments.x.constants;
  arguments.columns = std::max(1, kRecurrenceWarps / h3.head_dim) * h3.head_dim;
  const int32_t groups = (h3.d_model + arguments.columns - 1) / arguments.columns;
  Launch(device, operation, RecurrenceKernel<T, kSteps>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(sequences)),
          .threads = dim3(kRecurrenceThreads),
          .shared_bytes = RecurrenceBytes(arguments.columns, kSteps)},
         arguments);
}

template <typename T>
void RunSequence(Device& device, const H3SequenceCall& call) {
  Run<T, kSequenceSteps>(
      device, "h3_recurrence",
      {.x = MakeOperands<T>(call, {}), .start = call.start, .tokens = call.tokens(), .columns = 0},
      call.sequences());
}

template <typename T>
void RunStep(Device& device, const H3StepCall& call) {
  Run<T, 1>(device, "h3_recurrence_step",
            {.x = MakeOperands<T>(call, call.positions), .start = 0, .tokens = 1, .columns = 0},
            call.slots.cols);
}

}  // namespace

void H3Recurrence(Device& device, const H3SequenceCall& call) {
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  call.qkv.dtype == DType::kBF16 ? RunSequence<BF16>(device, call)
                                 : RunSequence<float>(device, call);
}

void H3RecurrenceStep(Device& device, const H3StepCall& call) {
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  call.qkv.dtype == DType::kBF16 ? RunStep<BF16>(device, call) : RunStep<float>(device, call);
}

}  // namespace hippodrome::cuda
