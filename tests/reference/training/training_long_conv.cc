// The training operations of the reference on long convolutions.
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/long_conv_backward.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {

std::unique_ptr<LongConvGradients> TrainingReference::NewLongConvGradients(
    const LongConvWeights& /*weights*/) {
  return std::make_unique<LongConvKernelGradients>();
}

void TrainingReference::LongConvBackward(const LongConvWeights& weights, Tensor u,
                                         int64_t sequences, Direction direction, Tensor dy,
                                         Gradient du, LongConvGradients& sums) {
  const int64_t tokens = u.rows / sequences;
  const OwnedTensor impulse = NewTensor(tokens, u.cols);
  const OwnedTensor response = NewTensor(tokens, u.cols);
  for (int64_t c = 0; c < u.cols; ++c) At(impulse, 0, c) = 1;
  LongConv(weights, impulse, 1, Direction::kForward, response);
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t first = b * tokens;
    Put(ConvolutionBackward(response, u.Rows(first, tokens), direction, dy.Rows(first, tokens),
                            static_cast<LongConvKernelGradients&>(sums)),
        du, first);
  }
}

void TrainingReference::TakeLongConvGradients(const LongConvWeights& /*weights*/,
                                              const LongConvParameters& parameters,
                                              LongConvGradients& sums,
                                              const LongConvParameterGradients& gradients) {
  auto& kernels = static_cast<LongConvKernelGradients&>(sums);
  if (const auto* shared = std::get_if<DiagonalSsmParameters>(&parameters)) {
    TakeDiagonalSsmGradients(*shared, kernels, gradients);
  } else {
    TakeNplrGradients(std::get<NplrParameters>(parameters), kernels, gradients);
  }
  kernels = LongConvKernelGradients();
}

}  // namespace hippodrome::reference
