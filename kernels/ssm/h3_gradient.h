// The kernels of the two SSMs of an H3 layer, and from the gradients of these to those of the
// layer's parameters, on the host, in double: what PrepareH3Convolution and TakeH3Gradients of
// TrainingBackend do on every backend.
//   taps[j] = sum_n B[n] C[n + j], shift_d added to the first                  (shift SSM)
//   K[l] = 2 Re sum_n C_n B_n w_n dA_n^l, w = dB / B, D added to the first     (diagonal SSM)
#ifndef HIPPODROME_KERNELS_SSM_H3_GRADIENT_H_
#define HIPPODROME_KERNELS_SSM_H3_GRADIENT_H_

#include <cstdint>
#include <span>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// taps: [d, N], rounded from double.
void H3Taps(const H3Parameters& parameters, std::span<float> taps,
            const HeadLoop& loop = OneAfterAnother);

// kernels: [H, length], rounded from double.
void H3Kernels(const H3Parameters& parameters, int64_t length, std::span<float> kernels,
               const HeadLoop& loop = OneAfterAnother);

// Replaces the gradients of shift_b, shift_c and shift_d.  dtaps: [d, N].
//   dC[n] = sum_{j <= n} dtaps[j] B[n - j];  dB[n] = sum_j dtaps[j] C[n + j];  dshift_d = dtaps[0]
void H3TapGradient(const H3Parameters& parameters, std::span<const float> dtaps,
                   const H3ParameterGradients& gradients, const HeadLoop& loop = OneAfterAnother);

// Replaces the gradients of d, log_dt, inv_a_real, a_imag, b and c.  dk: [H, length]. Heads that
// share a row of A and B add to it in ascending order.
void H3KernelGradient(const H3Parameters& parameters, std::span<const float> dk, int64_t length,
                      const H3ParameterGradients& gradients,
                      const HeadLoop& loop = OneAfterAnother);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_H3_GRADIENT_H_
