#include "kernels/ssm/h3_ssm.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/ssm/complex_math.h"
#include "kernels/ssm/mode_sum.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

Complex TimesConjugate(Complex a, Complex b) { return Times(a, std::conj(b)); }

Complex At(std::span<const float> pairs, int64_t index) {
  const auto i = static_cast<size_t>(2 * index);
  return {pairs[i], pairs[i + 1]};
}

void Store(Complex value, int64_t index, std::span<float> pairs) {
  const auto i = static_cast<size_t>(2 * index);
  pairs[i] = static_cast<float>(value.real());
  pairs[i + 1] = static_cast<float>(value.imag());
}

// One mode of a head after discretisation, and its derivatives. z = dt A.
struct Mode {
  Complex a, b, c;           // A, B, C
  Complex da, db;            // dA, dB
  Complex w, dw_dz, dw_ddt;  // w = dB / B, a function of z and dt
  Complex dlog_dz;           // of log dA
};

void Bilinear(Complex z, double dt, Mode& mode) {
  const Complex inverse = 1.0 / (1.0 - z / 2.0);
  mode.da = (1.0 + z / 2.0) / (1.0 - z / 2.0);
  mode.w = dt * inverse;
  mode.dw_dz = dt / 2 * Times(inverse, inverse);
  mode.dw_ddt = inverse;
  mode.dlog_dz = 1.0 / (1.0 - Times(z, z) / 4.0);
}

void Zoh(Complex z, double dt, Mode& mode) {
  mode.da = std::exp(z);
  mode.dw_ddt = Phi1(z, mode.da);
  mode.w = dt * mode.dw_ddt;
  mode.dw_dz = dt * Phi1Slope(z, mode.da);
  mode.dlog_dz = 1.0;
}

int64_t HeadsOf(const H3Parameters& p) { return p.d_model / p.head_dim; }

double StepOf(const H3Parameters& p, int64_t head) {
  return std::exp(double{p.log_dt[static_cast<size_t>(head)]});
}

std::vector<Mode> ModesOf(const H3Parameters& p, int64_t head) {
  const int64_t count = p.d_state / 2;
  const double dt = StepOf(p, head);
  std::vector<Mode> modes(static_cast<size_t>(count));
  for (int64_t n = 0; n < count; ++n) {
    Mode& mode = modes[static_cast<size_t>(n)];
    const int64_t row = head % p.n_ssm * count + n;
    const auto i = static_cast<size_t>(row);
    mode.a = {-std::exp(double{p.inv_a_real[i]}), p.a_imag[i]};
    mode.b = At(p.b, row);
    mode.c = At(p.c, head * count + n);
    p.discretization == Discretization::kZoh ? Zoh(dt * mode.a, dt, mode)
                                             : Bilinear(dt * mode.a, dt, mode);
    mode.db = Times(mode.b * dt, mode.dw_ddt);
  }
  return modes;
}

// The gradients of A and B as if each head had a row of its own, [H, M].
struct HeadGradients {
  explicit HeadGradients(size_t size) : a(size), b(size) {}

  std::vector<Complex> a;
  std::vector<Complex> b;
};

// g: d loss / d K. A complex gradient is d / d Re + i d / d Im: that of x is conj(f'(x)) times that
// of f(x).
void HeadParameterGradient(const H3Parameters& p, int64_t head, std::span<const double> g,
                           HeadGradients& rows, const H3ParameterGradients& gradients) {
  const std::vector<Mode> modes = ModesOf(p, head);
  std::vector<Complex> da;
  for (const Mode& mode : modes) da.push_back(mode.da);
  std::vector<Complex> m0(modes.size());
  std::vector<Complex> m1(modes.size());
  ModeMoments(da, g, m0, m1);
  const double dt = StepOf(p, head);
  double ddt = 0;
  for (size_t n = 0; n < modes.size(); ++n) {
    const Mode& mode = modes[n];
    const auto at = head * std::ssize(modes) + static_cast<int64_t>(n);
    const Complex dweight = 2.0 * std::conj(m0[n]);  // of W = C dB
    const Complex dlog = 2.0 * std::conj(Times(m1[n], Times(mode.c, mode.db)));
    const Complex dw = TimesConjugate(dweight, Times(mode.b, mode.c));
    const Complex dz = TimesConjugate(dlog, mode.dlog_dz) + TimesConjugate(dw, mode.dw_dz);
    ddt += TimesConjugate(dw, mode.dw_ddt).real() + TimesConjugate(dz, mode.a).real();
    Store(TimesConjugate(dweight, mode.db), at, gradients.c);
    rows.a[static_cast<size_t>(at)] = dt * dz;
    rows.b[static_cast<size_t>(at)] = TimesConjugate(dweight, Times(mode.c, mode.w));
  }
  gradients.log_dt[static_cast<size_t>(head)] = static_cast<float>(dt * ddt);
}

// Row s of A and B, which heads s, s + S, ... use.
void RowGradient(const H3Parameters& p, int64_t s, const HeadGradients& heads,
                 const H3ParameterGradients& gradients) {
  const int64_t modes = p.d_state / 2;
  for (int64_t n = 0; n < modes; ++n) {
    const auto row = static_cast<size_t>(s * modes + n);
    Complex da = 0.0;
    Complex db = 0.0;
    for (int64_t h = s; h < HeadsOf(p); h += p.n_ssm) {
      da += heads.a[static_cast<size_t>(h * modes + n)];
      db += heads.b[static_cast<size_t>(h * modes + n)];
    }
    gradients.inv_a_real[row] =
        static_cast<float>(da.real() * -std::exp(double{p.inv_a_real[row]}));
    gradients.a_imag[row] = static_cast<float>(da.imag());
    Store(db, s * modes + n, gradients.b);
  }
}

}  // namespace

H3Modes DiscretizeH3(const H3Parameters& p, const HeadLoop& loop) {
  H3Modes all = {.heads = HeadsOf(p), .modes = p.d_state / 2, .da = {}, .db = {}, .weights = {}};
  const auto size = static_cast<size_t>(all.heads * all.modes);
  all.da.resize(size);
  all.db.resize(size);
  all.weights.resize(size);
  loop(all.heads, [&](int64_t head) {
    auto at = static_cast<size_t>(head * all.modes);
    for (const Mode& mode : ModesOf(p, head)) {
      all.da[at] = mode.da;
      all.db[at] = mode.db;
      all.weights[at] = Times(2.0 * mode.c, mode.db);
      ++at;
    }
  });
  return all;
}

void HeadKernel(const H3Modes& modes, int64_t head, std::span<double> kernel) {
  const auto first = static_cast<size_t>(head * modes.modes);
  const auto count = static_cast<size_t>(modes.modes);
  SumModes(std::span(modes.da).subspan(first, count),
           std::span(modes.weights).subspan(first, count), kernel);
}

std::vector<double> H3Taps(const H3Parameters& p, const HeadLoop& loop) {
  const int64_t n = p.d_state;
  std::vector<double> taps(static_cast<size_t>(p.d_model * n));
  loop(p.d_model, [&](int64_t channel) {
    const float* b = p.shift_b.data() + channel * n;
    const float* c = p.shift_c.data() + channel * n;
    double* to = taps.data() + channel * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; i + j < n; ++j) to[j] += double{b[i]} * c[i + j];
    }
  });
  return taps;
}

std::vector<double> H3Kernels(const H3Parameters& p, int64_t length, const HeadLoop& loop) {
  const H3Modes modes = DiscretizeH3(p, loop);
  std::vector<double> kernels(static_cast<size_t>(modes.heads * length));
  loop(modes.heads, [&](int64_t head) {
    HeadKernel(modes, head, {kernels.data() + head * length, static_cast<size_t>(length)});
  });
  return kernels;
}

std::vector<float> H3TapsWithSkips(const H3Parameters& p, const HeadLoop& loop) {
  std::vector<double> taps = H3Taps(p, loop);
  for (int64_t channel = 0; channel < p.d_model; ++channel) {
    taps[static_cast<size_t>(channel * p.d_state)] += p.shift_d[static_cast<size_t>(channel)];
  }
  return {taps.begin(), taps.end()};
}

std::vector<float> H3KernelsWithSkips(const H3Parameters& p, int64_t length, const HeadLoop& loop) {
  const H3Modes modes = DiscretizeH3(p, loop);
  std::vector<float> kernels(static_cast<size_t>(modes.heads * length));
  loop(modes.heads, [&](int64_t head) {
    std::vector<double> kernel(static_cast<size_t>(length));
    HeadKernel(modes, head, kernel);
    kernel[0] += p.d[static_cast<size_t>(head)];
    std::copy(kernel.begin(), kernel.end(), kernels.begin() + head * length);
  });
  return kernels;
}

void H3TapGradient(const H3Parameters& p, std::span<const float> dtaps,
                   const H3ParameterGradients& gradients, const HeadLoop& loop) {
  const int64_t n = p.d_state;
  assert(std::ssize(dtaps) == p.d_model * n);
  loop(p.d_model, [&](int64_t channel) {
    const float* b = p.shift_b.data() + channel * n;
    const float* c = p.shift_c.data() + channel * n;
    const float* dtap = dtaps.data() + channel * n;
    std::vector<double> db(static_cast<size_t>(n));
    std::vector<double> dc(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j) {
      const double g = dtap[j];
      for (int64_t i = 0; i + j < n; ++i) {
        db[static_cast<size_t>(i)] += g * c[i + j];
        dc[static_cast<size_t>(i + j)] += g * b[i];
      }
    }
    std::copy(db.begin(), db.end(), gradients.shift_b.begin() + channel * n);
    std::copy(dc.begin(), dc.end(), gradients.shift_c.begin() + channel * n);
    gradients.shift_d[static_cast<size_t>(channel)] = dtap[0];
  });
}

void H3KernelGradient(const H3Parameters& p, std::span<const float> dk, int64_t length,
                      const H3ParameterGradients& gradients, const HeadLoop& loop) {
  const int64_t heads = HeadsOf(p);
  assert(std::ssize(dk) == heads * length);
  HeadGradients rows(static_cast<size_t>(heads * (p.d_state / 2)));
  loop(heads, [&](int64_t head) {
    const float* g = dk.data() + head * length;
    HeadParameterGradient(p, head, std::vector<double>(g, g + length), rows, gradients);
    gradients.d[static_cast<size_t>(head)] = g[0];
  });
  loop(p.n_ssm, [&](int64_t s) { RowGradient(p, s, rows, gradients); });
}

}  // namespace hippodrome
