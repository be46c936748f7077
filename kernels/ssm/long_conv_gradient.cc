#include "kernels/ssm/long_conv_gradient.h"

#include "kernels/ssm/diagonal_kernel.h"
#include "kernels/ssm/nplr_kernel.h"

namespace hippodrome {

void LongConvGradient(const LongConvParameters& parameters, std::span<const double> dk,
                      int64_t length, const LongConvParameterGradients& gradients,
                      const HeadLoop& loop) {
  for (size_t h = 0; h < gradients.d.size(); ++h) {
    gradients.d[h] = static_cast<float>(dk[h * static_cast<size_t>(length)]);
  }
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    NplrKernelGradient(*nplr, dk, length, gradients, loop);
  } else {
    DiagonalKernelGradient(std::get<DiagonalSsmParameters>(parameters), dk, length, gradients,
                           loop);
  }
}

}  // namespace hippodrome
