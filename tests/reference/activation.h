// The activations of linear operations and their derivatives.
#ifndef HIPPODROME_TESTS_REFERENCE_ACTIVATION_H_
#define HIPPODROME_TESTS_REFERENCE_ACTIVATION_H_

#include "kernels/backend.h"

namespace hippodrome::reference {

double Activate(double z, Epilogue::Activation activation);

// activation'(z); relu'(0) = 0.
double ActivationSlope(double z, Epilogue::Activation activation);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_ACTIVATION_H_
