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
  return x;
}

template <Activation kActivation, class DV>
HWY_INLINE void Columns(DV d, const float* sums, const float* bias, const float* residual,
                        float* y) {
  auto x = hn::LoadU(d, sums);
  if (bias != nullptr) x = hn::Add(x, hn::LoadU(d, bias));
  x = Activate<kActivation>(d, x);
  if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual));
  hn::StoreU(x, d, y);
}

template <Activation kActivation>
void Rows(const EpilogueArguments& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* sums = a.sums + r * kPanelColumns;
    const float* residual = a.residual == nullptr ? nullptr : a.residual + r * a.residual_stride;
    float* y = a.y + r * a.y_stride;
    const auto bias_at = [&](int64_t c) { return a.bias == nullptr ? nullptr : a.bias + c; };
    const auto residual_at = [&](int64_t c) {
      return residual == nullptr ? nullptr : residual + c;
    };
    int64_t c = 0;
    for (; c + kLanes <= a.cols; c += kLanes) {
      Columns<kActivation>(D(), sums + c, bias_at(c), residual_at(c), y + c);
    }
    for (; c < a.cols; ++c) {
      Columns<kActivation>(HWY_CAPPED(float, 1)(), sums + c, bias_at(c), residual_at(c), y + c);
    }
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
