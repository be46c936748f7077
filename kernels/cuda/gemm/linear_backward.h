// Gradients of matrix products.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_BACKWARD_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_BACKWARD_H_

#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/trained_weights.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// What TrainingBackend::LinearBackward is given. x: f32 or, beside bf16 weights, either; dy: f32;
// bias and gate: of one type, f32 or bf16.
struct LinearBackwardCall {
  Tensor x;  // [rows, in]
  const TrainedWeights& w;
  const Epilogue& epilogue;
  Tensor dy;  // [rows, out]
  const LinearGradients& gradients;
};

// Rows that are carried through all products at a time, for matrices of at most `cols` columns:
// what is in scratch memory for them is about 128 MB each time. Sums over rows are cut there.
int64_t LinearBlockRows(int64_t cols);

// The contract of TrainingBackend::LinearBackward. Products are those of Linear().
void LinearBackward(Device& device, MatmulLibrary* library, const LinearBackwardCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_BACKWARD_H_
