#include "tests/reference/activation.h"

#include <algorithm>
#include <cmath>

namespace hippodrome::reference {
namespace {

constexpr double kCubic = 0.044715;

double Sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

double GeluTanhSlope(double z) {
  const double scale = std::sqrt(2 / M_PI);
  const double t = std::tanh(scale * (z + kCubic * z * z * z));
  return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * scale * (1 + 3 * kCubic * z * z);
}

double GeluErfSlope(double z) {
  return 0.5 * (1 + std::erf(z / std::sqrt(2.0))) + z * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
}

}  // namespace

double Activate(double z, Epilogue::Activation activation) {
  switch (activation) {
    case Epilogue::Activation::kNone:
      return z;
    case Epilogue::Activation::kGeluTanh:
      return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + kCubic * z * z * z)));
    case Epilogue::Activation::kGeluErf:
      return 0.5 * z * (1 + std::erf(z / std::sqrt(2.0)));
    case Epilogue::Activation::kTanh:
      return std::tanh(z);
    case Epilogue::Activation::kRelu:
      return std::max(z, 0.0);
    case Epilogue::Activation::kSilu:
      return z * Sigmoid(z);
    case Epilogue::Activation::kSigmoid:
      return Sigmoid(z);
  }
  return z;
}

double ActivationSlope(double z, Epilogue::Activation activation) {
  switch (activation) {
    case Epilogue::Activation::kNone:
      return 1;
    case Epilogue::Activation::kGeluTanh:
      return GeluTanhSlope(z);
    case Epilogue::Activation::kGeluErf:
      return GeluErfSlope(z);
    case Epilogue::Activation::kTanh:
      return 1 - std::tanh(z) * std::tanh(z);
    case Epilogue::Activation::kRelu:
      return z > 0 ? 1 : 0;
    case Epilogue::Activation::kSilu:
      return Sigmoid(z) * (1 + z * (1 - Sigmoid(z)));
    case Epilogue::Activation::kSigmoid:
      return Sigmoid(z) * Sigmoid(-z);
  }
  return 1;
}

}  // namespace hippodrome::reference
