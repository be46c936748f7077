#include "kernels/cpu/gemm/linear_epilogue_backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/linear_epilogue_backward.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Activation = Epilogue::Activation;

// An activation and its derivative.
template <class V>
struct Curve {
  V value;
  V slope;
};

// sigmoid(u) and its derivative e / (1 + e)^2, e = exp(-|u|): nothing overflows or cancels.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> SigmoidCurve(D d, V u) {
  const V one = hn::Set(d, 1.0f);
  const V e = Exp(d, hn::Neg(hn::Abs(u)));
  const V high = hn::Div(one, hn::Add(one, e));
  const V low = hn::Mul(e, high);
  return {hn::IfThenElse(hn::Lt(u, hn::Zero(d)), low, high), hn::Mul(low, high)};
}

// tanh'(x) = 4 e / (1 + e)^2, e = exp(-2 |x|).
template <class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> TanhCurve(D d, V x) {
  const V slope = SigmoidCurve(d, hn::Add(x, x)).slope;
  return {Tanh(d, x), hn::Mul(slope, hn::Set(d, 4.0f))};
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> SiluCurve(D d, V x) {
  const Curve<V> s = SigmoidCurve(d, x);
  return {hn::Mul(x, s.value), hn::MulAdd(x, s.slope, s.value)};
}

// x sigmoid(u), u = 2 sqrt(2 / pi) (x + 0.044715 x^3), as GeluTanh(). Where x^2 reaches its bound
// the sigmoid is constant, and u' must only be finite.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> GeluTanhCurve(D d, V x) {
  const V x2 = hn::Min(hn::Mul(x, x), hn::Set(d, 1e6f));
  const V linear = hn::Set(d, 1.59576912f);
  const V u = hn::Mul(x, hn::MulAdd(x2, hn::Set(d, 0.0713548163f), linear));
  const V du = hn::MulAdd(x2, hn::Set(d, 3 * 0.0713548163f), linear);
  const Curve<V> s = SigmoidCurve(d, u);
  return {hn::Mul(x, s.value), hn::MulAdd(hn::Mul(x, du), s.slope, s.value)};
}

// Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)
template <class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> GeluErfCurve(D d, V x) {
  const V phi = NormalCdf(d, x);
  const V gauss = Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const V density = hn::Mul(gauss, hn::Set(d, 0.398942280f));
  return {hn::Mul(x, phi), hn::MulAdd(x, density, phi)};
}

template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE Curve<V> CurveAt(D d, V x) {
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanhCurve(d, x);
  if constexpr (kActivation == Activation::kGeluErf) return GeluErfCurve(d, x);
  if constexpr (kActivation == Activation::kTanh) return TanhCurve(d, x);
  if constexpr (kActivation == Activation::kRelu) {
    return {Relu(d, x), hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f))};
  }
  if constexpr (kActivation == Activation::kSilu) return SiluCurve(d, x);
  if constexpr (kActivation == Activation::kSigmoid) return SigmoidCurve(d, x);
  return {x, hn::Set(d, 1.0f)};
}

template <Activation kActivation, class D>
HWY_INLINE void Columns(D d, const EpilogueBackwardArguments& a, int64_t c) {
  auto z = hn::LoadU(d, a.z + c);
  if (a.bias != nullptr) z = hn::Add(z, hn::LoadU(d, a.bias + c));
  const auto curve = CurveAt<kActivation>(d, z);
  const auto dy = hn::LoadU(d, a.dy + c);
  auto dz = hn::Mul(dy, curve.slope);
  if (a.gate != nullptr) dz = hn::Mul(dz, hn::LoadU(d, a.gate + c));
  hn::StoreU(dz, d, a.z + c);
  if (a.dgate == nullptr) return;
  auto dgate = hn::Mul(dy, curve.value);
  if (a.add_to_dgate) dgate = hn::Add(dgate, hn::LoadU(d, a.dgate + c));
  hn::StoreU(dgate, d, a.dgate + c);
}

template <Activation kActivation>
void Row(const EpilogueBackwardArguments& a) {
  int64_t c = 0;
  for (; c + kLanes <= a.cols; c += kLanes) Columns<kActivation>(D(), a, c);
  for (; c < a.cols; ++c) Columns<kActivation>(One(), a, c);
}

void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments) {
  switch (arguments.activation) {
    case Activation::kNone:
      return Row<Activation::kNone>(arguments);
    case Activation::kGeluTanh:
      return Row<Activation::kGeluTanh>(arguments);
    case Activation::kGeluErf:
      return Row<Activation::kGeluErf>(arguments);
    case Activation::kTanh:
      return Row<Activation::kTanh>(arguments);
    case Activation::kRelu:
      return Row<Activation::kRelu>(arguments);
    case Activation::kSilu:
      return Row<Activation::kSilu>(arguments);
    case Activation::kSigmoid:
      return Row<Activation::kSigmoid>(arguments);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ApplyEpilogueBackward);

void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(ApplyEpilogueBackward)(arguments);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
