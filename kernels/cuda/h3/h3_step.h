// H3, one token for each of several sequences, in one launch.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_STEP_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_STEP_H_

#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

// What Backend::H3Step is given.
struct H3StepCall {
  const H3PrefillWeights& constants;
  Tensor qkv;  // [B, 3 d] activations
  H3Slots& state;
  Tensor slots;      // kI32 [1, B], -1: inert
  Tensor positions;  // kI32 [1, B]
  Tensor o;          // [B, d] activations
};

// The contract of Backend::H3Step. The layer and the number of slots of the state decide between
// the kernels, and each computes a sequence alone: its bits do not depend on those beside it.
void H3Step(Device& device, const H3StepCall& call);

// The contract of H3Step() for any layer; the kernel of H3Recurrence() with one token.
void H3RecurrenceStep(Device& device, const H3StepCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_STEP_H_
