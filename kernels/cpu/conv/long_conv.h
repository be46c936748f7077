// Convolutions over time whose channels share a kernel, and their gradients.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/long_conv_weights.h"

namespace hippodrome::cpu {

// How LongConv() is computed.
enum class ConvMethod : uint8_t { kFastest, kToeplitz, kFft };

// The contract of Backend::LongConv.
void ConvolveSequences(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights, Tensor u,
                       int64_t sequences, Direction direction, Tensor y,
                       ConvMethod method = ConvMethod::kFastest);

// The contract of TrainingBackend::LongConvBackward.
void ConvolveSequencesBackward(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights,
                               Tensor u, int64_t sequences, Direction direction, Tensor dy,
                               Gradient du, LongConvKernelGradients& sums,
                               ConvMethod method = ConvMethod::kFastest);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_H_
