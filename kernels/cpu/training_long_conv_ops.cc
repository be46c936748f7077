// The training operations of CpuBackend on long convolutions; each forwards to the file of its
// forward.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/long_conv_backward.h"
#include "kernels/cpu/long_conv_sums.h"
#include "kernels/cpu/long_conv_weights.h"
#include "kernels/long_conv_gradient.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cpu::SharedKernels& Kernels(const LongConvWeights& weights) {
  return static_cast<const cpu::SharedKernels&>(weights);
}

}  // namespace

std::unique_ptr<KernelGradients> CpuBackend::NewLongConvGradients(const LongConvWeights& weights) {
  return std::make_unique<cpu::LongConvSums>(Kernels(weights).tiling(), weights.longest());
}

void CpuBackend::LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                                  Direction direction, Tensor dy, Gradient du,
                                  KernelGradients& sums) {
  cpu::ConvolveSequencesBackward(pool_, plans_, Kernels(weights), u, sequences, direction, dy, du,
                                 static_cast<cpu::LongConvSums&>(sums));
}

void CpuBackend::TakeLongConvGradients(const LongConvWeights& weights,
                                       const LongConvParameters& parameters, KernelGradients& sums,
                                       const LongConvParameterGradients& gradients) {
  auto& taken = static_cast<cpu::LongConvSums&>(sums);
  LongConvGradient(parameters, taken.OfHeads(), weights.longest(), gradients, cpu::LoopOn(pool_));
  taken.Zero();
}

}  // namespace hippodrome
