#include "tests/reference/training/h3_parameter_gradients.h"

#include <cmath>

#include "tests/reference/training/mode_gradient.h"
#include "tests/reference/training/parameter_sums.h"

namespace hippodrome::reference {

// taps[j] = sum_n B[n] C[n + j].
void TakeShiftGradients(const H3Parameters& p, const H3KernelGradients& sums,
                        const H3ParameterGradients& gradients) {
  const int64_t modes = p.d_state;
  ParameterSums db(gradients.shift_b);
  ParameterSums dc(gradients.shift_c);
  ParameterSums dd(gradients.shift_d);
  for (int64_t channel = 0; channel < p.d_model; ++channel) {
    const int64_t at = channel * modes;
    for (int64_t j = 0; j < modes; ++j) {
      for (int64_t n = 0; n + j < modes; ++n) {
        db.Add(at + n, sums.taps(channel, j) * p.shift_c[at + n + j]);
        dc.Add(at + n + j, sums.taps(channel, j) * p.shift_b[at + n]);
      }
    }
    dd.Add(channel, sums.shift_d[channel]);
  }
}

void TakeDiagonalGradients(const H3Parameters& p, const H3KernelGradients& sums,
                           const H3ParameterGradients& gradients) {
  const Complex i(0, 1);
  const int64_t modes = p.d_state / 2;
  ParameterSums dd(gradients.d);
  ParameterSums dlog_dt(gradients.log_dt);
  ParameterSums dinv_a_real(gradients.inv_a_real);
  ParameterSums da_imag(gradients.a_imag);
  ParameterSums db(gradients.b);
  ParameterSums dc(gradients.c);
  for (int64_t h = 0; h < p.d_model / p.head_dim; ++h) {
    dd.Add(h, sums.d[h]);
    for (int64_t n = 0; n < modes; ++n) {
      const int64_t ab = h % p.n_ssm * modes + n;
      const int64_t at = h * modes + n;
      const Mode mode = {.a = Complex(-std::exp(double{p.inv_a_real[ab]}), p.a_imag[ab]),
                         .b = Complex(p.b[2 * ab], p.b[2 * ab + 1]),
                         .c = Complex(p.c[2 * at], p.c[2 * at + 1]),
                         .dt = std::exp(double{p.log_dt[h]})};
      const ModeGradient gradient(mode, p.discretization, 2, sums.k[h]);
      dlog_dt.Add(h, gradient.Along({.dt = mode.dt}));
      dinv_a_real.Add(ab, gradient.Along({.a = mode.a.real()}));
      da_imag.Add(ab, gradient.Along({.a = i}));
      db.Add(2 * ab, gradient.Along({.b = 1}));
      db.Add(2 * ab + 1, gradient.Along({.b = i}));
      dc.Add(2 * at, gradient.Along({.c = 1}));
      dc.Add(2 * at + 1, gradient.Along({.c = i}));
    }
  }
}

}  // namespace hippodrome::reference
