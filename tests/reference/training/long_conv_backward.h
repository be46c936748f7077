// The backward of a convolution over time, as sums over all pairs of tokens, and the gradients of
// the parameters of its kernels.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_LONG_CONV_BACKWARD_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_LONG_CONV_BACKWARD_H_

#include "kernels/training_backend.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

// d loss / d (kernel, skip) of each channel, also where channels share them.
struct LongConvKernelGradients final : public LongConvGradients {
  std::vector<std::vector<double>> k;  // [d], as long as the longest sequence so far
  std::vector<double> d;               // [d]

  // Grows to `channels` kernels of `length` numbers.
  void Reach(int64_t channels, int64_t length);
  // The sums over the channels that share kernel `head` of `heads`.
  std::vector<double> Kernel(int64_t head, int64_t heads) const;
  double Skip(int64_t head, int64_t heads) const;
};

// One sequence. response: [T, d], what the convolution makes of 1, 0, 0, ...: K[l], with the skip
// added to K[0]; u, dy: [T, d]. Adds to `sums` and returns du.
Matrix ConvolutionBackward(Tensor response, Tensor u, Direction direction, Tensor dy,
                           LongConvKernelGradients& sums);

void TakeDiagonalSsmGradients(const DiagonalSsmParameters& p, const LongConvKernelGradients& sums,
                              const LongConvParameterGradients& gradients);

void TakeNplrGradients(const NplrParameters& p, const LongConvKernelGradients& sums,
                       const LongConvParameterGradients& gradients);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_LONG_CONV_BACKWARD_H_
