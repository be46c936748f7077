// The training operations of CpuBackend on H3 layers; each forwards to the file of its forward.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/h3_convolution.h"
#include "kernels/h3_gradient.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cpu::H3ConvolutionWeights& Constants(const H3Weights& weights) {
  return static_cast<const cpu::H3ConvolutionWeights&>(weights);
}

}  // namespace

std::unique_ptr<H3Weights> CpuBackend::PrepareH3Convolution(const H3Parameters& parameters,
                                                            int64_t longest, DType /*weights*/) {
  return std::make_unique<cpu::H3ConvolutionWeights>(pool_, parameters, longest);
}

void CpuBackend::H3Convolution(const H3Weights& weights, Tensor qkv, int64_t sequences, Tensor o) {
  cpu::H3Convolution(pool_, plans_, Constants(weights), qkv, sequences, o);
}

std::unique_ptr<KernelGradients> CpuBackend::NewH3Gradients(const H3Weights& weights) {
  return std::make_unique<cpu::H3Sums>(Constants(weights).layout());
}

void CpuBackend::H3ConvolutionBackward(const H3Weights& weights, Tensor qkv, int64_t sequences,
                                       Tensor d_o, Gradient dqkv, KernelGradients& sums) {
  cpu::H3ConvolutionBackward(pool_, plans_, Constants(weights), qkv, sequences, d_o, dqkv,
                             static_cast<cpu::H3Sums&>(sums));
}

void CpuBackend::TakeH3Gradients(const H3Weights& weights, const H3Parameters& parameters,
                                 KernelGradients& sums, const H3ParameterGradients& gradients) {
  auto& taken = static_cast<cpu::H3Sums&>(sums);
  const HeadLoop loop = cpu::LoopOn(pool_);
  H3TapGradients(parameters, taken.Taps(), gradients, loop);
  H3KernelGradients(parameters, taken.Kernels(), Constants(weights).layout().longest, gradients,
                    loop);
  taken.Zero();
}

}  // namespace hippodrome
