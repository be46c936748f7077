// What leads from the gradient of an epilogue's output to that of what it was applied to.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_BACKWARD_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_BACKWARD_CUH_

#include "kernels/cuda/base/elements.cuh"
#include "kernels/cuda/gemm/linear_epilogue.cuh"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// An activation and its derivative.
struct Curve {
  float value;
  float slope;
};

// sigmoid(u) and its derivative e / (1 + e)^2, e = exp(-|u|): nothing overflows or cancels.
__device__ inline Curve SigmoidCurve(float u) {
  const float e = expf(-fabsf(u));
  const float high = 1.0f / (1.0f + e);
  const float low = e * high;
  return {u < 0 ? low : high, low * high};
}

// x sigmoid(u), u = 2 sqrt(2 / pi) (x + 0.044715 x^3). Where x^2 reaches its bound the sigmoid is
// constant, and u' must only be finite.
__device__ inline Curve GeluTanhCurve(float x) {
  constexpr float kLinear = 1.5957691216057308f;
  constexpr float kCubic = kLinear * 0.044715f;
  const float x2 = fminf(x * x, 1e6f);
  const Curve s = SigmoidCurve(x * fmaf(kCubic, x2, kLinear));
  const float du = fmaf(3 * kCubic, x2, kLinear);
  return {x * s.value, fmaf(x * du, s.slope, s.value)};
}

// Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)
__device__ inline Curve GeluErfCurve(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  constexpr float kDensity = 0.39894228040143268f;
  const float phi = 0.5f * erfcf(-kSqrtHalf * x);
  return {x * phi, fmaf(x * kDensity, expf(-0.5f * x * x), phi)};
}

__device__ inline Curve CurveAt(Epilogue::Activation activation, float x) {
  switch (activation) {
    case Epilogue::Activation::kGeluTanh:
      return GeluTanhCurve(x);
    case Epilogue::Activation::kGeluErf:
      return GeluErfCurve(x);
    case Epilogue::Activation::kTanh:  // tanh'(x) = 4 sigmoid'(2 x)
      return {tanhf(x), 4.0f * SigmoidCurve(2.0f * x).slope};
    case Epilogue::Activation::kRelu:
      return {x < 0 ? 0.0f : x, x > 0 ? 1.0f : 0.0f};
    case Epilogue::Activation::kSilu: {
      const Curve s = SigmoidCurve(x);
      return {x * s.value, fmaf(x, s.slope, s.value)};
    }
    case Epilogue::Activation::kSigmoid:
      return SigmoidCurve(x);
    case Epilogue::Activation::kNone:
      break;
  }
  return {x, 1.0f};
}

// Y: of the bias and the gate.
template <typename Y>
struct EpilogueBackward {
  Elements<const Y> bias;  // or none
  Epilogue::Activation activation;
  Elements<const Y> gate;  // or none
  Elements<const float> dy;
  Elements<float> dgate;  // or none; may be dy
  bool add_to_dgate;

  // dz of z before the bias; stores dgate.
  __device__ float Gradient(int64_t row, int64_t column, float z) const {
    if (bias.data != nullptr) z += Widen(bias.At(0, column));
    const Curve curve = CurveAt(activation, z);
    const float dy_here = dy.At(row, column);
    float dz = dy_here * curve.slope;
    if (gate.data != nullptr) dz *= Widen(gate.At(row, column));
    if (dgate.data == nullptr) return dz;
    float& to = dgate.At(row, column);
    to = add_to_dgate ? to + dy_here * curve.value : dy_here * curve.value;
    return dz;
  }
};

template <typename Y>
EpilogueBackward<Y> MakeEpilogueBackward(const Epilogue& epilogue, const Tensor& dy,
                                         const Gradient& dgate) {
  return {.bias = ElementsOf<const Y>(epilogue.bias),
          .activation = epilogue.activation,
          .gate = ElementsOf<const Y>(epilogue.gate),
          .dy = ElementsOf<const float>(dy),
          .dgate = ElementsOf<float>(epilogue.gate.data == nullptr ? Tensor{} : dgate.tensor),
          .add_to_dgate = dgate.add};
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_BACKWARD_CUH_
