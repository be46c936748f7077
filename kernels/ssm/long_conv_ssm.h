// The SSM of a long convolution, of either kind: its kernels, and from their gradients to those of
// its parameters, on the host in double precision.
#ifndef HIPPODROME_KERNELS_SSM_LONG_CONV_SSM_H_
#define HIPPODROME_KERNELS_SSM_LONG_CONV_SSM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// What all LongConvParameters have.
struct LongConvShape {
  int64_t channels;
  int64_t heads;  // H; an NPLR kernel is that of one channel
};
LongConvShape ShapeOf(const LongConvParameters& parameters);

// [H, length] with the skip, which is a tap more: K[0] + D, K[1], ... For the errors see
// DiagonalKernel() and NplrKernel().
std::vector<double> LongConvKernel(const LongConvParameters& parameters, int64_t length,
                                   const HeadLoop& loop = OneAfterAnother);

// Replaces `gradients`. dk: d loss / d LongConvKernel(), [H, length]. Rows of A that heads share
// sum in the order of the heads.
void LongConvKernelGradient(const LongConvParameters& parameters, std::span<const double> dk,
                            int64_t length, const LongConvParameterGradients& gradients,
                            const HeadLoop& loop = OneAfterAnother);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_LONG_CONV_SSM_H_
