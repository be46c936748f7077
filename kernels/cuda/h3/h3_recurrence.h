// The recurrence as a step.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_RECURRENCE_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_RECURRENCE_H_

#include "kernels/cuda/h3/h3_step.h"

namespace hippodrome::cuda {

// The contract of H3Step() for any layer; the kernel of H3Recurrence() with one token.
void H3RecurrenceStep(Device& device, const H3StepCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_RECURRENCE_H_
