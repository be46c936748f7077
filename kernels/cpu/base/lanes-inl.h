// Vectors of up to 16 floats, and elementary functions on them. Included once per target.
#if defined(HIPPODROME_KERNELS_CPU_BASE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HIPPODROME_KERNELS_CPU_BASE_LANES_INL_H_
#undef HIPPODROME_KERNELS_CPU_BASE_LANES_INL_H_
#else
#define HIPPODROME_KERNELS_CPU_BASE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loops take a vector of D at a time, and what is left one by one.
using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
using One = HWY_CAPPED(float, 1);
constexpr int64_t kLanes = hn::MaxLanes(D());

// exp(x) within 2 ulp; 0 below -87.3 (never subnormal), infinite above 88.37, 0 for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V low = hn::Set(d, -87.3f);
  const auto underflow = hn::Lt(x, low);
  x = hn::Min(hn::Max(x, low), hn::Set(d, 88.8f));
  // x = n ln 2 + r, |r| <= ln(2) / 2, with ln 2 in two parts so that r is exact to an ulp of x.
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // The series to r^7: the next term is below 6e-9.
  V p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  return hn::IfThenZeroElse(underflow, hn::Mul(p, hn::BitCast(d, exponent)));
}

// tanh(x) = (1 - exp(-2 |x|)) / (1 + exp(-2 |x|)) with the sign of x, and its series where that
// would cancel (and for NaN).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Abs(x);
  const V e = Exp(d, hn::Mul(z, hn::Set(d, -2.0f)));
  const V far = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  // The odd series to z^13 (below 0.35 the next term is under 2e-9 z).
  const V z2 = hn::Mul(z, z);
  V p = hn::Set(d, 21844.0f / 6081075);
  p = hn::MulAdd(p, z2, hn::Set(d, -1382.0f / 155925));
  p = hn::MulAdd(p, z2, hn::Set(d, 62.0f / 2835));
  p = hn::MulAdd(p, z2, hn::Set(d, -17.0f / 315));
  p = hn::MulAdd(p, z2, hn::Set(d, 2.0f / 15));
  p = hn::MulAdd(p, z2, hn::Set(d, -1.0f / 3));
  const V near = hn::MulAdd(hn::Mul(p, z2), z, z);
  return hn::CopySign(hn::IfThenElse(hn::Ge(z, hn::Set(d, 0.35f)), far, near), x);
}

// max(x, 0); NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

// x / (1 + exp(-x))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(x))));
}

// 1 / (1 + exp(-x))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

// 2^t within 1.6e-7 of itself, below 2^-125 within 2^-126; 0 from -127 down, infinite from 128 on,
// anything for NaN. For a t that is rounded already, of which Exp() would keep what is not there.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V t) {
  const hn::RebindToSigned<D> di;
  t = hn::Min(hn::Max(t, hn::Set(d, -127.0f)), hn::Set(d, 128.0f));
  // t = n + r, |r| <= 1/2. Added to 1.5 x 2^23, n is in the last bits of the sum.
  const V magic = hn::Set(d, 12582912.0f);
  const V sum = hn::Add(t, magic);
  const V r = hn::Sub(t, hn::Sub(sum, magic));
  // Our fit of least relative error, 1 at 0.
  V p = hn::Set(d, 0.00132647273f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00967151299f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0555073358f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.240222424f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693147004f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, sum));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

// x Phi(x) with Phi in its tanh form: 0.5 x (1 + tanh(z)) = x / (1 + exp(-2 z)),
// z = sqrt(2 / pi) (x + 0.044715 x^3); -2 z in units of ln 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V x2 = hn::Mul(x, x);
  const V factor = hn::MulAdd(x2, hn::Set(d, -0.102943240f), hn::Set(d, -2.30220820f));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), Exp2(d, hn::Mul(x, factor))));
}

// Phi(x) = erfc(-x / sqrt(2)) / 2. With z = |x| / sqrt(2) and t = 1 / (1 + 0.3 z), erfc(z) =
// exp(-z^2) t p(t): p is our fit at the Chebyshev nodes of z in [0, 10.2], within 3e-8.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalCdf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.707106781f));
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.3f), one));
  V p = hn::Set(d, -0.130845166f);
  p = hn::MulAdd(p, t, hn::Set(d, 0.492286529f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.526856073f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.565285957f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.107486531f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.220737311f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.146750589f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.170954553f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.169172808f));
  const V gauss = Exp2(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.721347520f)));  // exp(-x^2 / 2)
  const V half_erfc = hn::Mul(hn::Mul(gauss, hn::Set(d, 0.5f)), hn::Mul(t, p));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), half_erfc, hn::Sub(one, half_erfc));
}

// x Phi(x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluErf(D d, V x) {
  return hn::Mul(x, NormalCdf(d, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
