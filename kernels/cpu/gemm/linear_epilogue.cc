#include "kernels/cpu/gemm/linear_epilogue.h"

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/packed_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/linear_epilogue.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Activation = Epilogue::Activation;

template <Activation kActivation, class DV, class V>
HWY_INLINE V Activate(DV d, V x) {
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh(d, x);
  if constexpr (kActivation == Activation::kGeluErf) return GeluErf(d, x);
  if constexpr (kActivation == Activation::kTanh) return Tanh(d, x);
  if constexpr (kActivation == Activation::kRelu) return Relu(d, x);
  if constexpr (kActivation == Activation::kSilu) return Silu(d, x);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid(d, x);
  return x;
}

// What a row of the tile is combined with: null where there is nothing.
struct Row {
  const float* sums;
  const float* bias;
  const float* gate;
  const float* residual;
  float* y;
};

// kVectors vectors from column c on: two, to ask half as often what there is.
template <Activation kActivation, int kVectors, class DV>
HWY_INLINE void Columns(DV d, const Row& row, int64_t c) {
  const int64_t lanes = hn::Lanes(d);
  hn::Vec<DV> x[kVectors];
  const auto combine = [&](const float* with, auto operation) {
    if (with == nullptr) return;
    for (int v = 0; v < kVectors; ++v) x[v] = operation(x[v], hn::LoadU(d, with + c + v * lanes));
  };
  const auto add = [](auto a, auto b) { return hn::Add(a, b); };
  for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, row.sums + c + v * lanes);
  combine(row.bias, add);
  for (int v = 0; v < kVectors; ++v) x[v] = Activate<kActivation>(d, x[v]);
  combine(row.gate, [](auto a, auto b) { return hn::Mul(a, b); });
  combine(row.residual, add);
  for (int v = 0; v < kVectors; ++v) hn::StoreU(x[v], d, row.y + c + v * lanes);
}

const float* RowOf(const float* matrix, int64_t row, int64_t stride) {
  return matrix == nullptr ? nullptr : matrix + row * stride;
}

template <Activation kActivation>
void Rows(const EpilogueArguments& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const Row row = {.sums = a.sums + r * kPanelColumns,
                     .bias = a.bias,
                     .gate = RowOf(a.gate, r, a.gate_stride),
                     .residual = RowOf(a.residual, r, a.residual_stride),
                     .y = a.y + r * a.y_stride};
    int64_t c = 0;
    for (; c + 2 * kLanes <= a.cols; c += 2 * kLanes) Columns<kActivation, 2>(D(), row, c);
    for (; c + kLanes <= a.cols; c += kLanes) Columns<kActivation, 1>(D(), row, c);
    for (; c < a.cols; ++c) Columns<kActivation, 1>(One(), row, c);
  }
}

void ApplyEpilogue(const EpilogueArguments& arguments) {
  switch (arguments.activation) {
    case Activation::kNone:
      return Rows<Activation::kNone>(arguments);
    case Activation::kGeluTanh:
      return Rows<Activation::kGeluTanh>(arguments);
    case Activation::kGeluErf:
      return Rows<Activation::kGeluErf>(arguments);
    case Activation::kTanh:
      return Rows<Activation::kTanh>(arguments);
    case Activation::kRelu:
      return Rows<Activation::kRelu>(arguments);
    case Activation::kSilu:
      return Rows<Activation::kSilu>(arguments);
    case Activation::kSigmoid:
      return Rows<Activation::kSigmoid>(arguments);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ApplyEpilogue);

EpilogueArguments EpilogueOfTile(const Epilogue& epilogue, const Tensor& y, const float* sums,
                                 int64_t row, int64_t rows, int64_t column, int64_t cols) {
  const bool has_bias = epilogue.bias.data != nullptr;
  const bool has_gate = epilogue.gate.data != nullptr;
  const bool has_residual = epilogue.residual.data != nullptr;
  return {.sums = sums,
          .rows = rows,
          .cols = cols,
          .bias = has_bias ? F32Row(epilogue.bias, 0) + column : nullptr,
          .activation = epilogue.activation,
          .gate = has_gate ? F32Row(epilogue.gate, row) + column : nullptr,
          .gate_stride = epilogue.gate.stride,
          .residual = has_residual ? F32Row(epilogue.residual, row) + column : nullptr,
          .residual_stride = epilogue.residual.stride,
          .y = F32Row(y, row) + column,
          .y_stride = y.stride};
}

void ApplyEpilogue(const EpilogueArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(ApplyEpilogue)(arguments);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
