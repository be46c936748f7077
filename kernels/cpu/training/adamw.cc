#include "kernels/cpu/training/adamw.h"

#include "kernels/adamw_factors.h"
#include "kernels/cpu/base/parallel_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/adamw.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE void Update(D d, const AdamWFactors& f, const float* gradient, float* m, float* v,
                       float* w) {
  const auto g = hn::Mul(hn::Set(d, f.gradient), hn::LoadU(d, gradient));
  const auto old_m = hn::LoadU(d, m);
  const auto new_m = hn::MulAdd(hn::Set(d, f.m_rate), hn::Sub(g, old_m), old_m);
  const auto old_v = hn::Mul(hn::Set(d, f.v_decay), hn::LoadU(d, v));
  const auto new_v = hn::MulAdd(hn::Mul(hn::Set(d, f.v_rate), g), g, old_v);
  const auto decayed = hn::Mul(hn::Set(d, f.w_decay), hn::LoadU(d, w));
  const auto scale = hn::MulAdd(hn::Set(d, f.root), hn::Sqrt(new_v), hn::Set(d, f.epsilon));
  const auto ratio = hn::Div(new_m, scale);
  hn::StoreU(new_m, d, m);
  hn::StoreU(new_v, d, v);
  hn::StoreU(hn::NegMulAdd(hn::Set(d, f.rate), ratio, decayed), d, w);
}

void UpdateSpan(const AdamWFactors& factors, int64_t n, const float* gradient, float* m, float* v,
                float* w) {
  const D d;
  const One one;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) Update(d, factors, gradient + i, m + i, v + i, w + i);
  for (; i < n; ++i) Update(one, factors, gradient + i, m + i, v + i, w + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(UpdateSpan);

void AdamW(ThreadPool& pool, const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  const AdamWFactors factors = FactorsOf(step);
  const Spans<4> spans({gradient, m, v, w});
  spans.ForEach(pool, [&](int64_t, int64_t n, const std::array<float*, 4>& at) {
    HWY_DYNAMIC_DISPATCH(UpdateSpan)(factors, n, at[0], at[1], at[2], at[3]);
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
