// Activations, gates and residuals that follow no product.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_H_

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// The contract of Backend::Activate. x, y: both kF32 or both kBF16.
void Activate(Device& device, Tensor x, const Epilogue& epilogue, Tensor y);

// The contract of TrainingBackend::ActivateBackward, all f32.
void ActivateBackward(Device& device, Tensor x, const Epilogue& epilogue, Tensor dy,
                      const Gradient& dx, const Gradient& dgate);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_H_
