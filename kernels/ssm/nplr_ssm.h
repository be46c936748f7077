// The kernels of an NplrParameters, and their gradients, on the host in double precision. Formulas
// at SequenceBackend::PrepareLongConv.
#ifndef HIPPODROME_KERNELS_SSM_NPLR_SSM_H_
#define HIPPODROME_KERNELS_SSM_NPLR_SSM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// K, [d, length].
std::vector<double> NplrKernel(const NplrParameters& parameters, int64_t length,
                               const HeadLoop& loop = OneAfterAnother);

// Replaces the gradients of a_real, a_imag, b, p, c and log_step. dk: d loss / d K, [d, length].
void NplrKernelGradient(const NplrParameters& parameters, std::span<const double> dk,
                        int64_t length, const LongConvParameterGradients& gradients,
                        const HeadLoop& loop = OneAfterAnother);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_NPLR_SSM_H_
