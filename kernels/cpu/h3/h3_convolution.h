// H3 layers over whole sequences from empty states, and the gradients of that, as
// TrainingBackend::H3Convolution and H3ConvolutionBackward say.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/h3/h3_convolution_weights.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

void H3Convolution(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                   Tensor qkv, int64_t sequences, Tensor o);

// `sums`: of these weights.
void H3ConvolutionBackward(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                           Tensor qkv, int64_t sequences, Tensor d_o, Gradient dqkv,
                           H3KernelGradients& sums);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_H_
