// From the gradient of a convolution's kernels to those of its parameters, on the host.
#ifndef HIPPODROME_KERNELS_SSM_LONG_CONV_GRADIENT_H_
#define HIPPODROME_KERNELS_SSM_LONG_CONV_GRADIENT_H_

#include <cstdint>
#include <span>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// Replaces `gradients`. dk: d loss / d K without the skip, [H, length], whose first point is also
// d loss / d D. Computed in double; rows of A that heads share sum in the order of the heads.
void LongConvGradient(const LongConvParameters& parameters, std::span<const double> dk,
                      int64_t length, const LongConvParameterGradients& gradients,
                      const HeadLoop& loop = OneAfterAnother);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_LONG_CONV_GRADIENT_H_
