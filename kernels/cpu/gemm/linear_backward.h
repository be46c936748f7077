// The backward of y = epilogue(x W^T).
#ifndef HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_H_
#define HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_H_

#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/gemm/trained_weights.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::LinearBackward.
void LinearBackward(ThreadPool& pool, Tensor x, const TrainedWeights& w, const Epilogue& epilogue,
                    Tensor dy, const LinearGradients& gradients,
                    DotKernel kernel = DotKernel::kBest);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_H_
