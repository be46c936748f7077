// The state-space models of layers on the host, in double precision: what every backend prepares
// its constants from. Formulas at Backend::PrepareH3 and PrepareLongConv.
#ifndef HIPPODROME_KERNELS_SSM_SSM_KERNEL_H_
#define HIPPODROME_KERNELS_SSM_SSM_KERNEL_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ssm/diagonal_kernel.h"
#include "kernels/ssm/head_loop.h"

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
std::vector<double> H3Kernel(const H3Parameters& parameters, int64_t length);

// The first kernel.size() points of the kernel of one head.
void HeadKernel(const DiagonalModes& modes, int64_t head, std::span<double> kernel);

// What all LongConvParameters have.
struct LongConvShape {
  int64_t channels;
  int64_t heads;             // H; an NPLR kernel is that of one channel
  std::span<const float> d;  // [H]
};
LongConvShape ShapeOf(const LongConvParameters& parameters);

// The kernels of a layer's SSM, [H, length]; for their errors see DiagonalKernel() and
// NplrKernel().
std::vector<double> ConvolutionKernel(const LongConvParameters& parameters, int64_t length,
                                      const HeadLoop& loop = OneAfterAnother);

// taps[j] = sum_n B[n] C[n + j], [d, N]: the kernel of the shift SSM without its skip, zero for
// j >= N.
std::vector<double> ShiftTaps(const H3Parameters& parameters);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_SSM_KERNEL_H_
