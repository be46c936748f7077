// Activations, gates and residuals that follow no product.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_ACTIVATE_H_
#define HIPPODROME_KERNELS_CPU_GEMM_ACTIVATE_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of Backend::Activate.
void Activate(ThreadPool& pool, Tensor x, const Epilogue& epilogue, Tensor y);

// The contract of TrainingBackend::ActivateBackward.
void ActivateBackward(ThreadPool& pool, Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                      Gradient dgate);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_ACTIVATE_H_
