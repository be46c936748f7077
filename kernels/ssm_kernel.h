// The state-space models of an H3 layer and of an encoder on the host, in double precision: what
// every backend prepares its constants from. Formulas at Backend::PrepareH3 and PrepareLongConv.
#ifndef HIPPODROME_KERNELS_SSM_KERNEL_H_
#define HIPPODROME_KERNELS_SSM_KERNEL_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

// The diagonal SSM after discretisation: x_t = dA x_{t-1} + dB u_t, y_t = 2 Re sum_n C_n x_t[n].
struct DiagonalModes {
  int64_t heads = 0;
  int64_t modes = 0;                          // M
  std::vector<std::complex<double>> da;       // [H, M]
  std::vector<std::complex<double>> db;       // [H, M]
  std::vector<std::complex<double>> weights;  // [H, M], 2 C dB: y = Re sum weights x / dB
};

// dA and dB of head h come from row h mod n_ssm of A and B.
DiagonalModes Discretize(const H3Parameters& parameters);

// K[l] = 2 Re sum_n C_n dB_n dA_n^l, [H, length]. Relative error to max |K| below 1e-15 length.
std::vector<double> DiagonalKernel(const H3Parameters& parameters, int64_t length);

// The first kernel.size() points of the kernel of one head.
void HeadKernel(const DiagonalModes& modes, int64_t head, std::span<double> kernel);

// The kernels of an encoder's SSM, [H, length]. Relative error to sum_n |C_n B_n| below 1e-15
// length, where B_n = (exp(dt A_n) - 1) / A_n.
std::vector<double> SharedKernel(const SharedSsmParameters& parameters, int64_t length);

// taps[j] = sum_n B[n] C[n + j], [d, N]: the kernel of the shift SSM without its skip, zero for
// j >= N.
std::vector<double> ShiftTaps(const H3Parameters& parameters);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_KERNEL_H_
