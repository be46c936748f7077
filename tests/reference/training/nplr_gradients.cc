// The gradients of the parameters of an S4 layer, by the chain rule backwards through
//   A = diag(Lambda) - P P*, both halves of the conjugate pairs: 2M modes
//   G = (I - dt/2 A)^-1;  dA = 2 G - I;  dB = dt G B
//   C' = C (I - dA^length)^-1 where the stored C needs it
//   x_0 = dB, x_{l+1} = dA x_l;  K[l] = C' x_l
// A name that ends in _bar is d loss / d of what it is named after, each entry taken as a complex
// number of its own.
#include <cmath>
#include <complex>

#include "tests/reference/training/complex_matrix.h"
#include "tests/reference/training/long_conv_backward.h"
#include "tests/reference/training/parameter_sums.h"

namespace hippodrome::reference {
namespace {

using Complex = std::complex<double>;

// One kernel: its parameters with the conjugate halves appended.
struct Kernel {
  Kernel(const NplrParameters& p, int64_t channel) : dt(std::exp(double{p.log_step[channel]})) {
    const int64_t row = channel % (p.n_ssm == 0 ? p.channels : p.n_ssm);
    const auto complex = [&](std::span<const float> values, int64_t i) {
      return Complex(values[2 * i], values[2 * i + 1]);
    };
    for (const bool conjugate : {false, true}) {
      for (int64_t n = 0; n < p.modes; ++n) {
        const int64_t i = row * p.modes + n;
        const auto half = [&](Complex z) { return conjugate ? std::conj(z) : z; };
        lambda.push_back(half(Complex(-std::exp(double{p.a_real[i]}), -p.a_imag[i])));
        b.push_back(half(complex(p.b, i)));
        this->p.push_back(half(complex(p.p, i)));
        c.push_back(half(complex(p.c, channel * p.modes + n)));
      }
    }
    a = ComplexMatrix(lambda.size());
    for (size_t i = 0; i < lambda.size(); ++i) {
      for (size_t j = 0; j < lambda.size(); ++j) {
        a(i, j) = (i == j ? lambda[i] : 0.0) - this->p[i] * std::conj(this->p[j]);
      }
    }
  }

  double dt;
  ComplexVector lambda, b, p, c;
  ComplexMatrix a;
};

struct KernelBar {
  double dt = 0;
  ComplexMatrix a;
  ComplexVector b, c;
};

// Of C' = C (I - dA^length)^-1: adds to da_bar and returns c_bar.
ComplexVector StoredOutputBackward(const ComplexMatrix& da, const ComplexVector& c_prime,
                                   int64_t length, const ComplexVector& c_prime_bar,
                                   ComplexMatrix& da_bar) {
  const ComplexMatrix inverse = Inverse(Identity(da.size) - Power(da, length));
  const ComplexMatrix transpose = Transpose(da);
  const ComplexVector b = inverse * c_prime_bar;  // C_bar; and (dA^length)_bar = C'^T C_bar^T
  // d dA^length = sum_k dA^k d dA dA^(length-1-k)
  std::vector<ComplexVector> right = {b};
  for (int64_t k = 1; k < length; ++k) right.push_back(da * right.back());
  ComplexVector left = c_prime;
  for (int64_t k = 0; k < length; ++k) {
    AddOuter(left, right[length - 1 - k], da_bar);
    left = transpose * left;
  }
  return b;
}

KernelBar KernelBackward(const Kernel& kernel, int64_t c_length, const std::vector<double>& dk) {
  const size_t size = kernel.b.size();
  const Complex dt = kernel.dt;
  const ComplexMatrix g = Inverse(Identity(size) - 0.5 * dt * kernel.a);
  const ComplexMatrix da = 2.0 * g - Identity(size);
  const ComplexVector gb = g * kernel.b;
  ComplexVector c_prime = kernel.c;
  if (c_length > 0) {
    c_prime = Transpose(Inverse(Identity(size) - Power(da, c_length))) * kernel.c;
  }

  std::vector<ComplexVector> x = {dt * gb};
  for (size_t l = 1; l < dk.size(); ++l) x.push_back(da * x.back());
  ComplexVector c_prime_bar(size);
  ComplexMatrix da_bar(size);
  const ComplexMatrix transpose = Transpose(da);
  ComplexVector x_bar(size);  // of x_l, which goes to K[l] and x_{l+1}
  for (size_t l = dk.size(); l-- > 0;) {
    if (l + 1 < dk.size()) AddOuter(x_bar, x[l], da_bar);
    x_bar = transpose * x_bar;
    for (size_t n = 0; n < size; ++n) {
      x_bar[n] += dk[l] * c_prime[n];
      c_prime_bar[n] += dk[l] * x[l][n];
    }
  }

  KernelBar bar;
  bar.c = c_length == 0 ? c_prime_bar
                        : StoredOutputBackward(da, c_prime, c_length, c_prime_bar, da_bar);
  bar.b = dt * (Transpose(g) * x_bar);
  ComplexMatrix g_bar = 2.0 * da_bar;
  AddOuter(dt * x_bar, kernel.b, g_bar);
  // d G = G d(dt/2 A) G
  const ComplexMatrix half_bar = Transpose(g) * g_bar * Transpose(g);
  bar.a = 0.5 * dt * half_bar;
  for (size_t i = 0; i < size; ++i) {
    bar.dt += (x_bar[i] * gb[i]).real();
    for (size_t j = 0; j < size; ++j) bar.dt += 0.5 * (half_bar(i, j) * kernel.a(i, j)).real();
  }
  return bar;
}

// Of A = diag(Lambda) - P P*, by P and by its conjugate.
ComplexVector LowRankBackward(const Kernel& kernel, const ComplexMatrix& a_bar, bool conjugate) {
  ComplexVector bar(kernel.p.size());
  for (size_t i = 0; i < bar.size(); ++i) {
    for (size_t j = 0; j < bar.size(); ++j) {
      bar[i] -= conjugate ? a_bar(j, i) * kernel.p[j] : a_bar(i, j) * std::conj(kernel.p[j]);
    }
  }
  return bar;
}

}  // namespace

void TakeNplrGradients(const NplrParameters& p, const LongConvKernelGradients& sums,
                       const LongConvParameterGradients& gradients) {
  ParameterSums da_real(gradients.a_real);
  ParameterSums da_imag(gradients.a_imag);
  ParameterSums db(gradients.b);
  ParameterSums dp(gradients.p);
  ParameterSums dc(gradients.c);
  ParameterSums dlog_step(gradients.log_step);
  ParameterSums dd(gradients.d);
  const Complex i(0, 1);
  // d loss / d (re, im) of a z that is there together with its conjugate.
  const auto add = [&](ParameterSums& sum, int64_t at, Complex bar, Complex conjugate_bar) {
    sum.Add(2 * at, (bar + conjugate_bar).real());
    sum.Add(2 * at + 1, (i * bar - i * conjugate_bar).real());
  };
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const Kernel kernel(p, channel);
    const KernelBar bar = KernelBackward(kernel, p.c_length, sums.Kernel(channel, p.channels));
    const ComplexVector p_bar = LowRankBackward(kernel, bar.a, false);
    const ComplexVector p_conjugate_bar = LowRankBackward(kernel, bar.a, true);
    dd.Add(channel, sums.Skip(channel, p.channels));
    dlog_step.Add(channel, kernel.dt * bar.dt);
    const int64_t row = channel % (p.n_ssm == 0 ? p.channels : p.n_ssm);
    for (int64_t n = 0; n < p.modes; ++n) {
      const int64_t m = p.modes + n;  // the conjugate of mode n
      const int64_t at = row * p.modes + n;
      da_real.Add(at, (kernel.lambda[n].real() * (bar.a(n, n) + bar.a(m, m))).real());
      da_imag.Add(at, (-i * bar.a(n, n) + i * bar.a(m, m)).real());
      add(db, at, bar.b[n], bar.b[m]);
      add(dc, channel * p.modes + n, bar.c[n], bar.c[m]);
      add(dp, at, p_bar[n] + p_conjugate_bar[m], p_bar[m] + p_conjugate_bar[n]);
    }
  }
}

}  // namespace hippodrome::reference
