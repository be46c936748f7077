// What a step of AdamW does to each element.
#ifndef HIPPODROME_KERNELS_ADAMW_FACTORS_H_
#define HIPPODROME_KERNELS_ADAMW_FACTORS_H_

#include <cassert>
#include <cmath>

#include "kernels/training_backend.h"

namespace hippodrome {

// In f32 and in this order:
//   g = gradient dw;  m = m + m_rate (g - m);  v = v_decay v + (v_rate g) g
//   w = w_decay w;  w = w - rate m / (root sqrt(v) + epsilon)
struct AdamWFactors {
  float gradient, m_rate, v_decay, v_rate, w_decay, rate, root, epsilon;
};

// The factors of a step, computed in double.
inline AdamWFactors FactorsOf(const AdamWStep& step) {
  assert(step.step >= 1);
  const double t = static_cast<double>(step.step);
  const double m_correction = 1 - std::pow(step.beta1, t);
  const double v_correction = 1 - std::pow(step.beta2, t);
  return {.gradient = static_cast<float>(step.gradient_scale),
          .m_rate = static_cast<float>(1 - step.beta1),
          .v_decay = static_cast<float>(step.beta2),
          .v_rate = static_cast<float>(1 - step.beta2),
          .w_decay = static_cast<float>(1 - step.rate * step.weight_decay),
          .rate = static_cast<float>(step.rate / m_correction),
          .root = static_cast<float>(1 / std::sqrt(v_correction)),
          .epsilon = static_cast<float>(step.epsilon)};
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_ADAMW_FACTORS_H_
