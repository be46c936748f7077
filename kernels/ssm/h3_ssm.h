// The two SSMs of an H3 layer, and from the gradients of their kernels to those of the layer's
// parameters, on the host, in double: what every backend prepares its weights from and what
// TrainingBackend::TakeH3Gradients does. Discretisation as at SequenceBackend::PrepareH3.
//   taps[j] = sum_n B[n] C[n + j], j < N                              (shift SSM)
//   K[l] = 2 Re sum_n C_n dB_n dA_n^l                                 (diagonal SSM)
// A skip is a tap more: shift_d is added to taps[0], D to K[0].
#ifndef HIPPODROME_KERNELS_SSM_H3_SSM_H_
#define HIPPODROME_KERNELS_SSM_H3_SSM_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// The diagonal SSM after discretisation: x_t = dA x_{t-1} + dB u_t, y_t = 2 Re sum_n C_n x_t[n].
struct H3Modes {
  int64_t heads = 0;
  int64_t modes = 0;                          // M
  std::vector<std::complex<double>> da;       // [H, M]
  std::vector<std::complex<double>> db;       // [H, M]
  std::vector<std::complex<double>> weights;  // [H, M], 2 C dB: y = Re sum weights x / dB
};

// dA and dB of head h come from row h mod n_ssm of A and B.
H3Modes DiscretizeH3(const H3Parameters& parameters, const HeadLoop& loop = OneAfterAnother);

// The first kernel.size() points of the kernel of one head, without the skip. Relative error to
// max |K| below 1e-15 kernel.size().
void HeadKernel(const H3Modes& modes, int64_t head, std::span<double> kernel);

// [d, N] and [H, length], without the skips.
std::vector<double> H3Taps(const H3Parameters& parameters, const HeadLoop& loop = OneAfterAnother);
std::vector<double> H3Kernels(const H3Parameters& parameters, int64_t length,
                              const HeadLoop& loop = OneAfterAnother);

// The same with the skips, rounded.
std::vector<float> H3TapsWithSkips(const H3Parameters& parameters,
                                   const HeadLoop& loop = OneAfterAnother);
std::vector<float> H3KernelsWithSkips(const H3Parameters& parameters, int64_t length,
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

#endif  // HIPPODROME_KERNELS_SSM_H3_SSM_H_
