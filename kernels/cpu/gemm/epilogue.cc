#include "kernels/cpu/gemm/epilogue.h"

#include <type_traits>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/cpu/gemm/product_inputs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/epilogue.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Activation = Epilogue::Activation;

// Calls body with the activation as a constant.
template <typename Body>
HWY_INLINE void WithActivation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::kNone:
      return body(std::integral_constant<Activation, Activation::kNone>());
    case Activation::kGeluTanh:
      return body(std::integral_constant<Activation, Activation::kGeluTanh>());
    case Activation::kGeluErf:
      return body(std::integral_constant<Activation, Activation::kGeluErf>());
    case Activation::kTanh:
      return body(std::integral_constant<Activation, Activation::kTanh>());
    case Activation::kRelu:
      return body(std::integral_constant<Activation, Activation::kRelu>());
    case Activation::kSilu:
      return body(std::integral_constant<Activation, Activation::kSilu>());
    case Activation::kSigmoid:
      return body(std::integral_constant<Activation, Activation::kSigmoid>());
  }
}

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

// kVectors vectors of each row from column c on: several, to have more than one activation under
// way.
template <Activation kActivation, int kVectors, class DV>
HWY_INLINE void Columns(DV d, const EpilogueArguments& a, int64_t c) {
  using V = hn::Vec<DV>;
  const int64_t lanes = hn::Lanes(d);
  V bias[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    bias[v] = a.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, a.bias + c + v * lanes);
  }
  const float* sums = a.sums + c;
  const float* gate = a.gate == nullptr ? nullptr : a.gate + c;
  const float* residual = a.residual == nullptr ? nullptr : a.residual + c;
  float* y = a.y + c;
  for (int64_t r = 0; r < a.rows; ++r, sums += kPanelColumns, y += a.y_stride) {
    V x[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      x[v] = Activate<kActivation>(d, hn::Add(hn::LoadU(d, sums + v * lanes), bias[v]));
    }
    if (gate != nullptr) {
      for (int v = 0; v < kVectors; ++v) x[v] = hn::Mul(x[v], hn::LoadU(d, gate + v * lanes));
      gate += a.gate_stride;
    }
    if (residual != nullptr) {
      for (int v = 0; v < kVectors; ++v) x[v] = hn::Add(x[v], hn::LoadU(d, residual + v * lanes));
      residual += a.residual_stride;
    }
    for (int v = 0; v < kVectors; ++v) hn::StoreU(x[v], d, y + v * lanes);
  }
}

// As many as registers hold with their activations.
constexpr int kTogether = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <Activation kActivation>
void Rows(const EpilogueArguments& a) {
  int64_t c = 0;
  for (; c + kTogether * kLanes <= a.cols; c += kTogether * kLanes) {
    Columns<kActivation, kTogether>(D(), a, c);
  }
  for (; c + kLanes <= a.cols; c += kLanes) Columns<kActivation, 1>(D(), a, c);
  for (; c < a.cols; ++c) Columns<kActivation, 1>(One(), a, c);
}

void ApplyEpilogue(const EpilogueArguments& arguments) {
  WithActivation(arguments.activation,
                 [&](auto activation) { Rows<decltype(activation)::value>(arguments); });
}

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
HWY_INLINE void BackwardColumns(D d, const EpilogueBackwardArguments& a, int64_t c) {
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
void BackwardRow(const EpilogueBackwardArguments& a) {
  int64_t c = 0;
  for (; c + kLanes <= a.cols; c += kLanes) BackwardColumns<kActivation>(D(), a, c);
  for (; c < a.cols; ++c) BackwardColumns<kActivation>(One(), a, c);
}

void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments) {
  WithActivation(arguments.activation,
                 [&](auto activation) { BackwardRow<decltype(activation)::value>(arguments); });
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ApplyEpilogue);
HWY_EXPORT(ApplyEpilogueBackward);

namespace {

// Asks for a line that will be written, so that it leaves other caches. For the baseline of x86-64
// compilers make a fetch to read of it; processors without the instruction do nothing.
inline void FetchToWrite(const char* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1, 3);
#endif
}

// Asks for n values at `first`.
template <bool kWritten, typename T>
void FetchValues(const T* first, int64_t n) {
  const char* const bytes = reinterpret_cast<const char*>(first);
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T)); i += 64) {
    kWritten ? FetchToWrite(bytes + i) : __builtin_prefetch(bytes + i, 0, 3);
  }
}

}  // namespace

EpilogueArguments EpilogueOfTile(const Epilogue& epilogue, const Tensor& y, float* sums,
                                 int64_t row, int64_t rows, int64_t column, int64_t cols) {
  const bool has_bias = epilogue.bias.data != nullptr;
  const bool has_gate = epilogue.gate.data != nullptr;
  const bool has_residual = epilogue.residual.data != nullptr;
  const bool in_place = y.dtype != DType::kF32;
  return {.sums = sums,
          .rows = rows,
          .cols = cols,
          .bias = has_bias ? F32Row(epilogue.bias, 0) + column : nullptr,
          .activation = epilogue.activation,
          .gate = has_gate ? F32Row(epilogue.gate, row) + column : nullptr,
          .gate_stride = epilogue.gate.stride,
          .residual = has_residual ? F32Row(epilogue.residual, row) + column : nullptr,
          .residual_stride = epilogue.residual.stride,
          .y = in_place ? sums : F32Row(y, row) + column,
          .y_stride = in_place ? kPanelColumns : y.stride};
}

void ApplyEpilogue(const EpilogueArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(ApplyEpilogue)(arguments);
}

void FetchTile(const Epilogue& epilogue, const Tensor& y, int64_t row, int64_t rows, int64_t column,
               int64_t cols) {
  const auto fetch_read = [&](const Tensor& operand, int64_t r) {
    if (operand.data != nullptr) FetchValues<false>(F32Row(operand, r) + column, cols);
  };
  for (int64_t r = row; r < row + rows; ++r) {
    fetch_read(epilogue.gate, r);
    if (epilogue.residual.data != y.data) fetch_read(epilogue.residual, r);
    if (y.dtype == DType::kF32) FetchValues<true>(F32Row(y, r) + column, cols);
    if (y.dtype == DType::kBF16) FetchValues<true>(BF16Row(y, r) + column, cols);
    if (y.dtype == DType::kI8) FetchValues<true>(GroupAt(y, r, column / kInt8Group), 1);
  }
}

void FinishTile(const Epilogue& epilogue, const Tensor& y, float* sums, int64_t row, int64_t rows,
                int64_t column, int64_t cols) {
  ApplyEpilogue(EpilogueOfTile(epilogue, y, sums, row, rows, column, cols));
  if (y.dtype == DType::kF32) return;
  for (int64_t r = 0; r < rows; ++r) {
    RoundToBF16Dot(sums + r * kPanelColumns, cols, BF16Row(y, row + r) + column);
  }
}

void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(ApplyEpilogueBackward)(arguments);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
