// The training operations of CudaBackend on long convolutions; each forwards to the file of its
// forward.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/long_conv_backward.h"
#include "kernels/long_conv_gradient.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cuda::LongConvConstants& Constants(const LongConvWeights& weights) {
  return static_cast<const cuda::LongConvConstants&>(weights);
}

cuda::LongConvSums& Sums(KernelGradients& sums) { return static_cast<cuda::LongConvSums&>(sums); }

}  // namespace

std::unique_ptr<KernelGradients> CudaBackend::NewLongConvGradients(const LongConvWeights& weights) {
  return std::make_unique<cuda::LongConvSums>(device_, Constants(weights));
}

void CudaBackend::LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                                   Direction direction, Tensor dy, Gradient du,
                                   KernelGradients& sums) {
  cuda::LongConvBackward(device_, {Constants(weights), u, sequences, direction, dy, du},
                         Sums(sums));
}

void CudaBackend::TakeLongConvGradients(const LongConvWeights& weights,
                                        const LongConvParameters& parameters, KernelGradients& sums,
                                        const LongConvParameterGradients& gradients) {
  LongConvGradient(parameters, Sums(sums).kernels.Take(device_), weights.longest(), gradients);
}

}  // namespace hippodrome
