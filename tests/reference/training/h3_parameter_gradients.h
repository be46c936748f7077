// The gradients of an H3 layer's kernels, carried to its parameters.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_H3_PARAMETER_GRADIENTS_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_H3_PARAMETER_GRADIENTS_H_

#include "kernels/training_backend.h"
#include "tests/reference/training/h3_backward.h"

namespace hippodrome::reference {

// Sets shift_b, shift_c and shift_d.
void TakeShiftGradients(const H3Parameters& p, const H3KernelGradients& sums,
                        const H3ParameterGradients& gradients);

// Sets d, log_dt, inv_a_real, a_imag, b and c.
void TakeDiagonalGradients(const H3Parameters& p, const H3KernelGradients& sums,
                           const H3ParameterGradients& gradients);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_H3_PARAMETER_GRADIENTS_H_
