#include "kernels/cpu/linear_epilogue.h"

#include "kernels/cpu/packed_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_epilogue.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using D = HWY_CAPPED(float, 16);
constexpr int64_t kLanes = hn::MaxLanes(D());
using Activation = Epilogue::Activation;

template <Activation kActivation, class DV, class V>
HWY_INLINE V Activate(DV d, V x) {
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh(d, x);
  if constexpr (kActivation == Activation::kGeluErf) return GeluErf(d, x);
  if constexpr (kActivation == Activation::kTanh) return Tanh(d, x);
  if constexpr (kActivation == Activation::kRelu) return Relu(d, x);
  if constexpr (kActivation == Activation::kSilu) return Silu(d, x);
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

template <Activation kActivation, class DV>
HWY_INLINE void Columns(DV d, const Row& row, int64_t c) {
  auto x = hn::LoadU(d, row.sums + c);
  if (row.bias != nullptr) x = hn::Add(x, hn::LoadU(d, row.bias + c));
  x = Activate<kActivation>(d, x);
  if (row.gate != nullptr) x = hn::Mul(x, hn::LoadU(d, row.gate + c));
  if (row.residual != nullptr) x = hn::Add(x, hn::LoadU(d, row.residual + c));
  hn::StoreU(x, d, row.y + c);
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
    for (; c + kLanes <= a.cols; c += kLanes) Columns<kActivation>(D(), row, c);
    for (; c < a.cols; ++c) Columns<kActivation>(HWY_CAPPED(float, 1)(), row, c);
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
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ApplyEpilogue);

void ApplyEpilogue(const EpilogueArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(ApplyEpilogue)(arguments);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
