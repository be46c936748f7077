// The kernel of a state matrix that is diagonal plus rank one, as its recurrence, for a group of
// channels side by side.
#include "kernels/ssm/nplr_modes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ssm/nplr_recurrence.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = HWY_CAPPED(double, kNplrLanes);
using V = hn::Vec<Lanes>;
constexpr int64_t kLanes = hn::MaxLanes(Lanes());

struct Complex {
  V re, im;
};

// Lanes [lane, lane + kLanes).
HWY_INLINE Complex Load(const NplrLanes& from, int64_t lane) {
  return {hn::LoadU(Lanes(), from.re + lane), hn::LoadU(Lanes(), from.im + lane)};
}
HWY_INLINE void Store(Complex x, int64_t lane, NplrLanes& to) {
  hn::StoreU(x.re, Lanes(), to.re + lane);
  hn::StoreU(x.im, Lanes(), to.im + lane);
}
// sum + Re(a x).
HWY_INLINE V AddRealProduct(Complex a, Complex x, V sum) {
  return hn::NegMulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, sum));
}
// sum + Re(conj(a) x).
HWY_INLINE V AddRealDot(Complex a, Complex x, V sum) {
  return hn::MulAdd(a.im, x.im, hn::MulAdd(a.re, x.re, sum));
}
HWY_INLINE Complex Multiply(Complex a, Complex x) {
  return {hn::NegMulAdd(a.im, x.im, hn::Mul(a.re, x.re)),
          hn::MulAdd(a.im, x.re, hn::Mul(a.re, x.im))};
}
// conj(a) x.
HWY_INLINE Complex MultiplyConjugate(Complex a, Complex x) {
  return {hn::MulAdd(a.im, x.im, hn::Mul(a.re, x.re)),
          hn::NegMulAdd(a.im, x.re, hn::Mul(a.re, x.im))};
}
// sum + conj(a) r.
HWY_INLINE Complex AddConjugate(Complex a, V r, Complex sum) {
  return {hn::MulAdd(a.re, r, sum.re), hn::NegMulAdd(a.im, r, sum.im)};
}

// Sums over modes run in two chains, so that consecutive modes do not wait for each other.

// 2 Re sum_n f_n x_n, f a member of the modes.
template <NplrLanes NplrMode::* kFactor>
HWY_INLINE V Output(const NplrGroup& group, int64_t lane, const NplrLanes* x) {
  V sums[2] = {hn::Zero(Lanes()), hn::Zero(Lanes())};
  for (size_t n = 0; n < group.size(); ++n) {
    sums[n % 2] = AddRealProduct(Load(group[n].*kFactor, lane), Load(x[n], lane), sums[n % 2]);
  }
  return hn::Mul(hn::Set(Lanes(), 2.0), hn::Add(sums[0], sums[1]));
}

// to = d x - u r; returns 2 Re sum_n v_n to_n.
HWY_INLINE V Step(const NplrGroup& group, int64_t lane, const NplrLanes* x, V r, NplrLanes* to) {
  V sums[2] = {hn::Zero(Lanes()), hn::Zero(Lanes())};
  for (size_t n = 0; n < group.size(); ++n) {
    const NplrMode& mode = group[n];
    const Complex product = Multiply(Load(mode.d, lane), Load(x[n], lane));
    const Complex u = Load(mode.u, lane);
    const Complex next = {hn::NegMulAdd(u.re, r, product.re), hn::NegMulAdd(u.im, r, product.im)};
    Store(next, lane, to[n]);
    sums[n % 2] = AddRealProduct(Load(mode.v, lane), next, sums[n % 2]);
  }
  return hn::Mul(hn::Set(Lanes(), 2.0), hn::Add(sums[0], sums[1]));
}

std::vector<NplrLanes> FirstState(const NplrGroup& group) {
  std::vector<NplrLanes> state;
  for (const NplrMode& mode : group) state.push_back(mode.b);
  return state;
}

void NplrGroupKernel(const NplrGroup& group, int64_t length, double* kernel) {
  std::vector<NplrLanes> state = FirstState(group);
  NplrLanes* const x = state.data();
  for (int64_t lane = 0; lane < kNplrLanes; lane += kLanes) {
    V r = Output<&NplrMode::v>(group, lane, x);
    for (int64_t l = 0; l < length; ++l) {
      hn::StoreU(Output<&NplrMode::c>(group, lane, x), Lanes(), kernel + l * kNplrLanes + lane);
      r = Step(group, lane, x, r, x);
    }
  }
}

// Adds what time l contributes to the gradients `to`, and carries that of x_{l+1}, which is in the
// place of b, to that of x_l. r: r_l; dr, its gradient: -sum Re(conj(u) dx_{l+1}). Returns that of
// r_{l-1}.
HWY_INLINE V Back(const NplrGroup& group, int64_t lane, const NplrLanes* x, V r, V dr, V dk,
                  NplrGroup& to) {
  const V twice_dr = hn::Add(dr, dr);
  const V twice_dk = hn::Add(dk, dk);
  V sums[2] = {hn::Zero(Lanes()), hn::Zero(Lanes())};
  for (size_t n = 0; n < group.size(); ++n) {
    const NplrMode& mode = group[n];
    NplrMode& sum = to[n];
    const Complex state = Load(x[n], lane);
    const Complex after = Load(sum.b, lane);
    const Complex d = MultiplyConjugate(state, after);
    const Complex sum_d = Load(sum.d, lane);
    Store({hn::Add(sum_d.re, d.re), hn::Add(sum_d.im, d.im)}, lane, sum.d);
    const Complex sum_u = Load(sum.u, lane);
    Store({hn::NegMulAdd(after.re, r, sum_u.re), hn::NegMulAdd(after.im, r, sum_u.im)}, lane,
          sum.u);
    Store(AddConjugate(state, twice_dr, Load(sum.v, lane)), lane, sum.v);
    Store(AddConjugate(state, twice_dk, Load(sum.c, lane)), lane, sum.c);
    Complex before = MultiplyConjugate(Load(mode.d, lane), after);
    before = AddConjugate(Load(mode.v, lane), twice_dr, before);
    before = AddConjugate(Load(mode.c, lane), twice_dk, before);
    Store(before, lane, sum.b);
    sums[n % 2] = AddRealDot(Load(mode.u, lane), before, sums[n % 2]);
  }
  return hn::Neg(hn::Add(sums[0], sums[1]));
}

NplrGroup NplrGroupGradient(const NplrGroup& group, int64_t length, const double* dk) {
  NplrGroup to(group.size());
  const auto size = static_cast<int64_t>(group.size());
  std::vector<NplrLanes> states = FirstState(group);
  states.resize(static_cast<size_t>((length + 1) * size));
  std::vector<double> r(static_cast<size_t>((length + 1) * kNplrLanes));
  for (int64_t lane = 0; lane < kNplrLanes; lane += kLanes) {
    NplrLanes* x = states.data();
    V next_r = Output<&NplrMode::v>(group, lane, x);
    for (int64_t l = 0; l < length; ++l, x += size) {
      hn::StoreU(next_r, Lanes(), r.data() + l * kNplrLanes + lane);
      next_r = Step(group, lane, x, next_r, x + size);
    }
    V dr = hn::Zero(Lanes());
    for (int64_t l = length - 1; l >= 0; --l) {
      const int64_t at = l * kNplrLanes + lane;
      dr = Back(group, lane, states.data() + l * size, hn::LoadU(Lanes(), r.data() + at), dr,
                hn::LoadU(Lanes(), dk + at), to);
    }
  }
  return to;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome {

HWY_EXPORT(NplrGroupKernel);
HWY_EXPORT(NplrGroupGradient);

void NplrGroupKernel(const NplrGroup& group, int64_t length, double* kernel) {
  HWY_DYNAMIC_DISPATCH(NplrGroupKernel)(group, length, kernel);
}

NplrGroup NplrGroupGradient(const NplrGroup& group, int64_t length, const double* dk) {
  return HWY_DYNAMIC_DISPATCH(NplrGroupGradient)(group, length, dk);
}

}  // namespace hippodrome
#endif  // HWY_ONCE
