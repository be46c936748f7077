// What follows the sums of a product: bias, activation, gate, residual, store.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_

#include "kernels/backend.h"
#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/row_vector.cuh"
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

__device__ inline float Sigmoid(float x) { return FastReciprocal(1.0f + expf(-x)); }

// GELU in its two forms, without cancellation where x < 0.
__device__ inline float GeluTanh(float x) {
  constexpr float kTwoSqrt2OverPi = 1.5957691216057308f;
  return x * Sigmoid(kTwoSqrt2OverPi * x * fmaf(0.044715f * x, x, 1.0f));
}
// x Phi(x), where Phi(-|x|) = exp(-x^2 / 2) t Q(t), t = 1 / (1 + 0.4 |x| / sqrt(2)). Q is least
// maximum of the relative error, 6.6e-8 up to |x| = 14, beyond which the product is 0 in f32: a
// fifth of the instructions of erfcf().
__device__ inline float GeluErf(float x) {
  constexpr float kScale = 0.28284271247461901f;
  constexpr float kHalfLog2E = 0.72134752044448170f;
  constexpr float kQ[] = {0.112820316f,  0.113167157f,  0.101330518f,   0.095191827f, 0.0433926782f,
                          0.0389226927f, 0.0463911868f, -0.0722755603f, 0.0210592178f};
  const float t = FastReciprocal(fmaf(kScale, fabsf(x), 1.0f));
  float q = kQ[8];
#pragma unroll
  for (int i = 7; i >= 0; --i) q = fmaf(q, t, kQ[i]);
  const float tail = q * t * FastExp2(-kHalfLog2E * x * x);
  return x * (x < 0 ? tail : 1.0f - tail);
}

// Of kWidth values in place. One choice for all of them.
template <int kWidth>
__device__ void Activate(Epilogue::Activation activation, float (&x)[kWidth]) {
  const auto each = [&x](const auto& function) {
#pragma unroll
    for (float& value : x) value = function(value);
  };
  switch (activation) {
    case Epilogue::Activation::kGeluTanh:
      return each([](float v) { return GeluTanh(v); });
    case Epilogue::Activation::kGeluErf:
      return each([](float v) { return GeluErf(v); });
    case Epilogue::Activation::kTanh:
      return each([](float v) { return tanhf(v); });
    case Epilogue::Activation::kRelu:
      return each([](float v) { return v < 0 ? 0.0f : v; });  // NaN stays
    case Epilogue::Activation::kSilu:
      return each([](float v) { return v * Sigmoid(v); });
    case Epilogue::Activation::kSigmoid:
      return each([](float v) { return Sigmoid(v); });
    case Epilogue::Activation::kNone:
      return;
  }
}

// What kWidth sums of adjacent columns meet, neutral where there is nothing. It is read early, to
// be there in time.
template <int kWidth>
struct EpilogueValues {
  float bias[kWidth];
  float gate[kWidth];
  float residual[kWidth];
};

template <typename Y, int kWidth>
__device__ void LoadOr(float neutral, const Y* from, float (&values)[kWidth]) {
  if (from == nullptr) {
#pragma unroll
    for (float& value : values) value = neutral;
    return;
  }
  const RowVector<Y, kWidth> vector = LoadVector<Y, kWidth>(from);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = Widen(vector.values[i]);
}

// Rows are aligned to kWidth values.
template <int kWidth, typename Y>
__device__ EpilogueValues<kWidth> LoadEpilogue(const EpilogueArguments<Y>& a, int64_t row,
                                               int column) {
  const auto at = [row, column](const Y* data, int64_t stride) {
    return data == nullptr ? nullptr : data + row * stride + column;
  };
  EpilogueValues<kWidth> values;
  LoadOr(0.0f, at(a.bias, 0), values.bias);
  LoadOr(1.0f, at(a.gate, a.gate_stride), values.gate);
  LoadOr(0.0f, at(a.residual, a.residual_stride), values.residual);
  return values;
}

// y[row, column + i] = activation(sums[i] + bias) gate + residual.
template <int kWidth, typename Y>
__device__ void Store(const EpilogueArguments<Y>& a, float (&sums)[kWidth],
                      const EpilogueValues<kWidth>& values, int64_t row, int column) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[i] += values.bias[i];
  Activate(a.activation, sums);
  RowVector<Y, kWidth> y;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    y.values[i] = FromFloat<Y>(sums[i] * values.gate[i] + values.residual[i]);
  }
  StoreVector<Y, kWidth>(y, a.y + row * a.y_stride + column);
}

// Whether its rows and those of y can be moved in vectors of `width` values.
inline bool EpilogueIsAligned(const Epilogue& epilogue, const Tensor& y, int64_t width) {
  const auto aligned = [width](const Tensor& tensor) {
    return tensor.data == nullptr || RowsAreAligned(tensor, width);
  };
  return RowsAreAligned(y, width) && aligned(epilogue.bias) && aligned(epilogue.gate) &&
         aligned(epilogue.residual);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_EPILOGUE_CUH_
