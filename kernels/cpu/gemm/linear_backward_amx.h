// The backward of a product with bf16 weights on matrix registers.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_AMX_H_
#define HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_AMX_H_

#include <functional>

#include "kernels/cpu/gemm/linear_amx.h"
#include "kernels/cpu/gemm/microkernel_amx.h"
#include "kernels/cpu/gemm/trained_weights.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// Turns a piece of z = x W^T, without the bias, into dz in place.
using GradientOfPiece = std::function<void(const AmxSums& z)>;

// dx, dW and dbias from dz, which never lies in memory as f32: dz is `dy` itself, or, where that is
// empty, what `gradient` makes of z, piece by piece on many threads. `gradients` as of
// TrainingBackend::LinearBackward, its gate left out; x: at most a few thousand rows. REQUIRES:
// HaveAmx(), kBF16 weights.
void LinearBackwardAmx(ThreadPool& pool, const Tensor& x, const TrainedWeights& w, const Tensor& dy,
                       const GradientOfPiece& gradient, const LinearGradients& gradients);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_BACKWARD_AMX_H_
