// The gradients of convolutions over time.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_BACKWARD_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_BACKWARD_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/fft_plans.h"
#include "kernels/cpu/conv/long_conv.h"
#include "kernels/cpu/conv/long_conv_sums.h"
#include "kernels/cpu/conv/long_conv_weights.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::LongConvBackward.
void ConvolveSequencesBackward(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights,
                               Tensor u, int64_t sequences, Direction direction, Tensor dy,
                               Gradient du, LongConvKernelGradients& sums,
                               ConvMethod method = ConvMethod::kFastest);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_BACKWARD_H_
