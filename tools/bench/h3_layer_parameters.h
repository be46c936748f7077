// Parameters of an H3 layer as they are at the start of a training.
#ifndef HIPPODROME_TOOLS_BENCH_H3_LAYER_PARAMETERS_H_
#define HIPPODROME_TOOLS_BENCH_H3_LAYER_PARAMETERS_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

class H3LayerParameters {
 public:
  static constexpr int64_t kState = 64;  // N
  static constexpr int64_t kModes = kState / 2;

  explicit H3LayerParameters(int64_t d_model)
      : d_model_(d_model),
        small_(static_cast<size_t>(d_model * kState), 0.1f),
        log_dt_(static_cast<size_t>(d_model), std::log(0.01f)),
        inv_a_real_(static_cast<size_t>(d_model * kModes), std::log(0.5f)) {
    for (int64_t i = 0; i < d_model * kModes; ++i) {
      a_imag_.push_back(3.14159f * static_cast<float>(i % kModes));
    }
  }

  // Valid as long as this object.
  H3Parameters view() const {
    H3Parameters p;
    p.d_model = d_model_;
    p.d_state = kState;
    p.n_ssm = d_model_;
    p.shift_b = p.shift_c = p.b = p.c = small_;
    p.shift_d = p.d = std::span(small_).first(static_cast<size_t>(d_model_));
    p.log_dt = log_dt_;
    p.inv_a_real = inv_a_real_;
    p.a_imag = a_imag_;
    return p;
  }

 private:
  int64_t d_model_;
  std::vector<float> small_;
  std::vector<float> log_dt_;
  std::vector<float> inv_a_real_;
  std::vector<float> a_imag_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_H3_LAYER_PARAMETERS_H_
