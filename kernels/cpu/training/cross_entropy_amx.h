// The loss of a language model's head on matrix registers.
#ifndef HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_AMX_H_
#define HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_AMX_H_

#include "kernels/cpu/gemm/linear_backward_amx.h"

namespace hippodrome::cpu {

// LinearCrossEntropy() for at most a few thousand rows. The logits are computed twice, for the sums
// of the softmax and for the gradients, which costs less than to store them. labels: of the rows;
// losses: likewise. REQUIRES: HaveAmx(), kBF16 weights.
void CrossEntropyAmx(ThreadPool& pool, const Tensor& x, const TrainedWeights& w, const Tensor& bias,
                     const int32_t* labels, double scale, float* losses,
                     const LinearGradients* gradients);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_AMX_H_
