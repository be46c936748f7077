// Activations in double, for tests.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_ACTIVATIONS_H_
#define HIPPODROME_TESTS_KERNELS_CPU_ACTIVATIONS_H_

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/backend.h"

namespace hippodrome {

inline constexpr Epilogue::Activation kActivations[] = {
    Epilogue::Activation::kNone,   Epilogue::Activation::kGeluTanh, Epilogue::Activation::kGeluErf,
    Epilogue::Activation::kTanh,   Epilogue::Activation::kRelu,     Epilogue::Activation::kSilu,
    Epilogue::Activation::kSigmoid};

inline double Activate(Epilogue::Activation activation, double x) {
  switch (activation) {
    case Epilogue::Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Epilogue::Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Epilogue::Activation::kTanh:
      return std::tanh(x);
    case Epilogue::Activation::kRelu:
      return std::max(x, 0.0);
    case Epilogue::Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Epilogue::Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

// By central differences, within 1e-10: their own error is 1e-10 |f'''| / 6, rounding's 1e-11 |x|.
inline double ActivationSlope(Epilogue::Activation activation, double x) {
  constexpr double kStep = 1e-5;
  return (Activate(activation, x + kStep) - Activate(activation, x - kStep)) / (2 * kStep);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_ACTIVATIONS_H_
