#include "kernels/cuda/training/adamw.h"

#include "kernels/adamw_factors.h"
#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

struct AdamWBody {
  AdamWFactors factors;
  Elements<const float> gradient;
  Elements<float> m, v, w;

  __device__ void operator()(int64_t row, int64_t column) const {
    const float g = factors.gradient * gradient.At(row, column);
    const float old_m = m.At(row, column);
    const float new_m = fmaf(factors.m_rate, g - old_m, old_m);
    const float new_v = fmaf(factors.v_rate * g, g, factors.v_decay * v.At(row, column));
    const float decayed = factors.w_decay * w.At(row, column);
    const float ratio = new_m / fmaf(factors.root, sqrtf(new_v), factors.epsilon);
    m.At(row, column) = new_m;
    v.At(row, column) = new_v;
    w.At(row, column) = fmaf(-factors.rate, ratio, decayed);
  }
};

}  // namespace

void AdamW(Device& device, const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  ForEachElement(device, "adamw", JoinedShape({gradient, m, v, w}),
                 AdamWBody{FactorsOf(step), ElementsOf<const float>(gradient), ElementsOf<float>(m),
                           ElementsOf<float>(v), ElementsOf<float>(w)});
}

}  // namespace hippodrome::cuda
