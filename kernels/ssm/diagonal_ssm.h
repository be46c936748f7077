// The kernels of a DiagonalSsmParameters, and their gradients, on the host in double precision.
// Formulas at SequenceBackend::PrepareLongConv.
#ifndef HIPPODROME_KERNELS_SSM_DIAGONAL_SSM_H_
#define HIPPODROME_KERNELS_SSM_DIAGONAL_SSM_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// K, [H, length]. Relative error to scale sum_n |C_n B_n| below 1e-15 length, where B_n =
// (exp(dt A_n) - 1) / A_n.
std::vector<double> DiagonalKernel(const DiagonalSsmParameters& parameters, int64_t length,
                                   const HeadLoop& loop = OneAfterAnother);

// One channel of the recurrence: x_t = a x_{t-1} + u_t, y_t = Re sum_n w_n x_t[n] + D u_t. States
// are kept divided by B, which is in w.
struct DiagonalRecurrence {
  std::vector<std::complex<double>> a, w;  // [N]
};
DiagonalRecurrence RecurrenceOfHead(const DiagonalSsmParameters& parameters, int64_t head);

// Replaces the gradients of a_real, a_imag, c and log_step. dk: d loss / d K, [H, length].
void DiagonalKernelGradient(const DiagonalSsmParameters& parameters, std::span<const double> dk,
                            int64_t length, const LongConvParameterGradients& gradients,
                            const HeadLoop& loop = OneAfterAnother);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_DIAGONAL_SSM_H_
