// The specification: every operation of kernels/backend.h and kernels/training_backend.h as its
// equation, in double precision, one element at a time, with the recurrence in place of the
// convolution.
#ifndef HIPPODROME_TESTS_REFERENCE_REFERENCE_BACKEND_H_
#define HIPPODROME_TESTS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>

#include "kernels/training_backend.h"

namespace hippodrome {

// Activations and gradients are f64. Slow on purpose. Sample() draws as the CPU backend does, in
// double.
std::unique_ptr<TrainingBackend> MakeReferenceBackend();

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_REFERENCE_REFERENCE_BACKEND_H_
