// Operations on the elements of f32 matrices.
#ifndef HIPPODROME_KERNELS_CPU_BASE_ELEMENTWISE_H_
#define HIPPODROME_KERNELS_CPU_BASE_ELEMENTWISE_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contracts of TrainingBackend's operations of these names.
void Fill(ThreadPool& pool, float value, Tensor x);
void Copy(ThreadPool& pool, Tensor x, Tensor y);
void Add(ThreadPool& pool, Tensor x, Tensor y);
double SumOfSquares(ThreadPool& pool, Tensor x);
void MovingAverage(ThreadPool& pool, Tensor x, double decay, Tensor average);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_ELEMENTWISE_H_
