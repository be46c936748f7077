// The loss of next tokens.
#ifndef HIPPODROME_KERNELS_CUDA_TRAINING_CROSS_ENTROPY_H_
#define HIPPODROME_KERNELS_CUDA_TRAINING_CROSS_ENTROPY_H_

#include "kernels/cuda/gemm/linear_backward.h"

namespace hippodrome::cuda {

// What TrainingBackend::LinearCrossEntropy is given. x: as for LinearBackward; bias, losses: f32.
struct CrossEntropyCall {
  Tensor x;  // [rows, in]
  const TrainedWeights& w;
  Tensor bias;    // [1, out], or empty
  Tensor labels;  // kI32 [1, rows]
  double scale;
  Tensor losses;                     // [1, rows]
  const LinearGradients* gradients;  // or null
};

// The contract of TrainingBackend::LinearCrossEntropy. Products are those of Linear().
void LinearCrossEntropy(Device& device, MatmulLibrary* library, const CrossEntropyCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_TRAINING_CROSS_ENTROPY_H_
