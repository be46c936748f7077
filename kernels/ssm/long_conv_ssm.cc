#include "kernels/ssm/long_conv_ssm.h"

#include "kernels/ssm/diagonal_ssm.h"
#include "kernels/ssm/nplr_ssm.h"

namespace hippodrome {

LongConvShape ShapeOf(const LongConvParameters& parameters) {
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    return {nplr->channels, nplr->channels};
  }
  const auto& diagonal = std::get<DiagonalSsmParameters>(parameters);
  return {diagonal.channels, diagonal.heads};
}

std::vector<double> LongConvKernel(const LongConvParameters& parameters, int64_t length,
                                   const HeadLoop& loop) {
  const auto* nplr = std::get_if<NplrParameters>(&parameters);
  const auto* diagonal = std::get_if<DiagonalSsmParameters>(&parameters);
  std::vector<double> kernels =
      nplr ? NplrKernel(*nplr, length, loop) : DiagonalKernel(*diagonal, length, loop);
  const std::span<const float> d = nplr ? nplr->d : diagonal->d;
  for (size_t h = 0; h < d.size(); ++h) kernels[h * static_cast<size_t>(length)] += d[h];
  return kernels;
}

void LongConvKernelGradient(const LongConvParameters& parameters, std::span<const double> dk,
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
