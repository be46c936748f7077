// What follows the sums of a product: bias, activation, gate, residual, store.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_

#include "kernels/backend.h"
#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {

template <typename Y>
struct EpilogueArguments {
  const Y* bias;  // [out], or null
  Epilogue::Activation activation;
  const Y* gate;  // rows of gate_stride, or null; may be y
  int64_t gate_stride;
  const Y* residual;  // rows of residual_stride, or null; may be y
  int64_t residual_stride;
  Y* y;  // rows of y_stride
  int64_t y_stride;
};

template <typename Y>
EpilogueArguments<Y> MakeEpilogue(const Epilogue& epilogue, const Tensor& y) {
  const auto row = [](const Tensor& tensor) {
    return tensor.data == nullptr ? nullptr : DeviceRow<Y>(tensor, 0);
  };
  return {.bias = row(epilogue.bias),
          .activation = epilogue.activation,
          .gate = row(epilogue.gate),
          .gate_stride = epilogue.gate.stride,
          .residual = row(epilogue.residual),
          .residual_stride = epilogue.residual.stride,
          .y = DeviceRow<Y>(y, 0),
          .y_stride = y.stride};
}

// GELU in its two forms, without cancellation where x < 0.
__device__ inline float GeluTanh(float x) {
  constexpr float kTwoSqrt2OverPi = 1.5957691216057308f;
  return x / (1.0f + expf(-kTwoSqrt2OverPi * x * fmaf(0.044715f * x, x, 1.0f)));
}
__device__ inline float GeluErf(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  return 0.5f * x * erfcf(-kSqrtHalf * x);
}

__device__ inline float Activate(Epilogue::Activation activation, float x) {
  switch (activation) {
    case Epilogue::Activation::kGeluTanh:
      return GeluTanh(x);
    case Epilogue::Activation::kGeluErf:
      return GeluErf(x);
    case Epilogue::Activation::kTanh:
      return tanhf(x);
    case Epilogue::Activation::kRelu:
      return x < 0 ? 0.0f : x;  // NaN stays
    case Epilogue::Activation::kSilu:
      return x / (1.0f + expf(-x));
    case Epilogue::Activation::kSigmoid:
      return 1.0f / (1.0f + expf(-x));
    case Epilogue::Activation::kNone:
      break;
  }
  return x;
}

// What one sum meets, neutral where there is nothing. It is read early, to be there in time.
struct EpilogueValues {
  float bias;
  float gate;
  float residual;
};
template <typename Y>
__device__ EpilogueValues LoadEpilogue(const EpilogueArguments<Y>& a, int64_t row, int column) {
  return {a.bias == nullptr ? 0.0f : Widen(a.bias[column]),
          a.gate == nullptr ? 1.0f : Widen(a.gate[row * a.gate_stride + column]),
          a.residual == nullptr ? 0.0f : Widen(a.residual[row * a.residual_stride + column])};
}

// y[row, column] = activation(sum + bias) gate + residual.
template <typename Y>
__device__ void Store(const EpilogueArguments<Y>& a, float sum, const EpilogueValues& values,
                      int64_t row, int column) {
  const float y = Activate(a.activation, sum + values.bias) * values.gate + values.residual;
  a.y[row * a.y_stride + column] = FromFloat<Y>(y);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_
