// The loss of a language model's head, and its backward.
#ifndef HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_H_
#define HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_H_

#include "kernels/cpu/gemm/linear_backward.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::LinearCrossEntropy.
void LinearCrossEntropy(ThreadPool& pool, Tensor x, const TrainedWeights& w, Tensor bias,
                        Tensor labels, double scale, Tensor losses,
                        const LinearGradients* gradients, DotKernel kernel = DotKernel::kBest);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_TRAINING_CROSS_ENTROPY_H_
