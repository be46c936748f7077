// Plain operations on matrices, and sums over them.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_ELEMENTWISE_H_
#define HIPPODROME_KERNELS_CUDA_BASE_ELEMENTWISE_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contracts of TrainingBackend. Matrices are f32; those of Copy() are f32 or bf16, each.
void Fill(Device& device, float value, Tensor x);
void Copy(Device& device, Tensor x, Tensor y);
void Add(Device& device, Tensor x, Tensor y);
void MovingAverage(Device& device, Tensor x, double decay, Tensor average);
double SumOfSquares(Device& device, Tensor x);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_ELEMENTWISE_H_
