// The training operations of CudaBackend on H3 layers; each forwards to the file of its forward.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/h3_convolution.h"
#include "kernels/h3_gradient.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cuda::H3ConvolutionConstants& Constants(const H3Weights& weights) {
  return static_cast<const cuda::H3ConvolutionConstants&>(weights);
}

cuda::H3ConvolutionSums& Sums(KernelGradients& sums) {
  return static_cast<cuda::H3ConvolutionSums&>(sums);
}

std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

std::unique_ptr<H3Weights> CudaBackend::PrepareH3Convolution(const H3Parameters& parameters,
                                                             int64_t longest, DType weights) {
  const DType activations = weights == DType::kBF16 ? DType::kBF16 : DType::kF32;
  return std::make_unique<cuda::H3ConvolutionConstants>(device_, parameters, longest, activations);
}

void CudaBackend::H3Convolution(const H3Weights& weights, Tensor qkv, int64_t sequences, Tensor o) {
  cuda::H3Convolution(device_, Constants(weights), qkv, sequences, o);
}

std::unique_ptr<KernelGradients> CudaBackend::NewH3Gradients(const H3Weights& weights) {
  return std::make_unique<cuda::H3ConvolutionSums>(device_, Constants(weights));
}

void CudaBackend::H3ConvolutionBackward(const H3Weights& weights, Tensor qkv, int64_t sequences,
                                        Tensor d_o, Gradient dqkv, KernelGradients& sums) {
  cuda::H3ConvolutionBackward(device_, Constants(weights), qkv, sequences, d_o, dqkv, Sums(sums));
}

void CudaBackend::TakeH3Gradients(const H3Weights& weights, const H3Parameters& parameters,
                                  KernelGradients& sums, const H3ParameterGradients& gradients) {
  cuda::H3ConvolutionSums& taken = Sums(sums);
  H3TapGradients(parameters, Floats(taken.taps.Take(device_)), gradients);
  H3KernelGradients(parameters, Floats(taken.kernels.Take(device_)), Constants(weights).longest(),
                    gradients);
}

}  // namespace hippodrome
