// The training operations of the reference on H3 layers.
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/h3_backward.h"
#include "tests/reference/training/h3_parameter_gradients.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {

std::unique_ptr<H3ConvolutionWeights> TrainingReference::PrepareH3Convolution(
    const H3Parameters& parameters, int64_t /*longest*/, DType /*weights*/) {
  return std::make_unique<H3Layer>(parameters);
}

void TrainingReference::H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv,
                                      int64_t sequences, Tensor o) {
  const auto& layer = static_cast<const H3Layer&>(weights);
  const int64_t tokens = qkv.rows / sequences;
  for (int64_t b = 0; b < sequences; ++b) {
    H3SlotState state = layer.NewState();
    for (int64_t row = b * tokens; row < (b + 1) * tokens; ++row) {
      layer.Step(qkv.Rows(row, 1), DType::kF32, state, o.Rows(row, 1));
    }
  }
}

std::unique_ptr<H3Gradients> TrainingReference::NewH3Gradients(
    const H3ConvolutionWeights& weights) {
  return std::make_unique<H3KernelGradients>(static_cast<const H3Layer&>(weights));
}

void TrainingReference::H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv,
                                              int64_t sequences, Tensor d_o, Gradient dqkv,
                                              H3Gradients& sums) {
  const int64_t tokens = qkv.rows / sequences;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t first = b * tokens;
    Put(H3Backward(static_cast<const H3Layer&>(weights), qkv.Rows(first, tokens),
                   d_o.Rows(first, tokens), static_cast<H3KernelGradients&>(sums)),
        dqkv, first);
  }
}

void TrainingReference::TakeH3Gradients(const H3ConvolutionWeights& weights,
                                        const H3Parameters& parameters, H3Gradients& sums,
                                        const H3ParameterGradients& gradients) {
  auto& kernels = static_cast<H3KernelGradients&>(sums);
  TakeShiftGradients(parameters, kernels, gradients);
  TakeDiagonalGradients(parameters, kernels, gradients);
  kernels = H3KernelGradients(static_cast<const H3Layer&>(weights));
}

}  // namespace hippodrome::reference
