// What follows the sums of a product: bias, activation, residual, store.
#ifndef HIPPODROME_KERNELS_CUDA_LINEAR_EPILOGUE_CUH_
#define HIPPODROME_KERNELS_CUDA_LINEAR_EPILOGUE_CUH_

#include "kernels/backend.h"
#include "kernels/cuda/device_code.cuh"

namespace hippodrome::cuda {

template <typename Y>
struct EpilogueArguments {
  const Y* bias;  // [out], or null
  Epilogue::Activation activation;
  const Y* residual;  // rows of residual_stride, or null; may be y
  int64_t residual_stride;
  Y* y;  // rows of y_stride
  int64_t y_stride;
};

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
  if (activation == Epilogue::Activation::kGeluTanh) return GeluTanh(x);
  if (activation == Epilogue::Activation::kGeluErf) return GeluErf(x);
  return x;
}

// What is added to one sum, zero where there is nothing. It is read early, to be there in time.
struct Addends {
  float bias;
  float residual;
};
template <typename Y>
__device__ Addends LoadAddends(const EpilogueArguments<Y>& a, int64_t row, int column) {
  return {a.bias == nullptr ? 0.0f : Widen(a.bias[column]),
          a.residual == nullptr ? 0.0f : Widen(a.residual[row * a.residual_stride + column])};
}

// y[row, column] = activation(sum + bias) + residual.
template <typename Y>
__device__ void Store(const EpilogueArguments<Y>& a, float sum, const Addends& addends, int64_t row,
                      int column) {
  const float y = Activate(a.activation, sum + addends.bias) + addends.residual;
  a.y[row * a.y_stride + column] = FromFloat<Y>(y);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_LINEAR_EPILOGUE_CUH_
