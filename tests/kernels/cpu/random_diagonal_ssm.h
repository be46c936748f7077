// SSMs of an encoder with reproducible random parameters.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_RANDOM_DIAGONAL_SSM_H_
#define HIPPODROME_TESTS_KERNELS_CPU_RANDOM_DIAGONAL_SSM_H_

#include "kernels/backend.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome {

// Modes that decay over tens of tokens and oscillate over a few.
class RandomDiagonalSsm {
 public:
  RandomDiagonalSsm(int64_t channels, int64_t heads, int64_t modes)
      : channels_(channels),
        heads_(heads),
        modes_(modes),
        a_real_(RandomValues(heads * modes, 1, 0.4f)),
        a_imag_(RandomValues(heads * modes, 2, 30)),
        c_(RandomValues(heads * modes * 2, 3)),
        log_step_(RandomValues(heads, 4, 0.5f)),
        d_(RandomValues(heads, 5)) {
    for (float& a : a_real_) a -= 0.5f;
    for (float& step : log_step_) step -= 3;
  }

  DiagonalSsmParameters parameters() const {
    return {.channels = channels_,
            .heads = heads_,
            .modes = modes_,
            .a_real = a_real_,
            .a_imag = a_imag_,
            .c = c_,
            .log_step = log_step_,
            .d = d_};
  }

 private:
  int64_t channels_, heads_, modes_;
  std::vector<float> a_real_, a_imag_, c_, log_step_, d_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_RANDOM_DIAGONAL_SSM_H_
