#include "kernels/ssm/diagonal_ssm.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "kernels/ssm/complex_math.h"
#include "kernels/ssm/mode_sum.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

constexpr double kLargestRealPart = -1e-4;

int64_t RowsOfA(const DiagonalSsmParameters& p) { return p.n_ssm == 0 ? p.heads : p.n_ssm; }

double Step(const DiagonalSsmParameters& p, int64_t head) {
  return p.log_step.empty() ? 1 : std::exp(double{p.log_step[static_cast<size_t>(head)]});
}

// A, from number i of the stored ones.
Complex StateMatrix(const DiagonalSsmParameters& p, int64_t i) {
  const double re = p.a_real[static_cast<size_t>(i)];
  const double im = p.a_imag[static_cast<size_t>(i)];
  switch (p.form) {
    case StateMatrixForm::kClamped:
      return {std::min(re, kLargestRealPart), im};
    case StateMatrixForm::kExpReal:
      return {-std::exp(re), im};
    case StateMatrixForm::kExpBoth:
      return {-std::exp(re), std::exp(im)};
  }
  return {};
}

// d loss / d (a_real, a_imag) from that of A.
void StoreStateGradient(const DiagonalSsmParameters& p, int64_t i, Complex a, Complex da,
                        const LongConvParameterGradients& gradients) {
  const auto at = static_cast<size_t>(i);
  double re = da.real();
  double im = da.imag();
  if (p.form != StateMatrixForm::kClamped) {
    re *= a.real();
  } else if (double{p.a_real[at]} > kLargestRealPart) {
    re = 0;
  }
  if (p.form == StateMatrixForm::kExpBoth) im *= a.imag();
  gradients.a_real[at] = static_cast<float>(re);
  gradients.a_imag[at] = static_cast<float>(im);
}

// The modes of a head after discretisation, without C.
struct DiagonalModes {
  std::vector<Complex> a;   // A
  std::vector<Complex> da;  // exp(dt A)
  std::vector<Complex> db;  // scale (exp(dt A) - 1) / A
};

DiagonalModes DiscretizeHead(const DiagonalSsmParameters& p, int64_t head) {
  DiagonalModes modes;
  const double dt = Step(p, head);
  for (int64_t n = 0; n < p.modes; ++n) {
    const Complex a = StateMatrix(p, head % RowsOfA(p) * p.modes + n);
    const Complex da = std::exp(dt * a);
    modes.a.push_back(a);
    modes.da.push_back(da);
    modes.db.push_back(p.scale * dt * Phi1(dt * a, da));
  }
  return modes;
}

// The modes of all heads: without steps of their own, heads of one row of A share them.
class AllModes {
 public:
  AllModes(const DiagonalSsmParameters& p, const HeadLoop& loop)
      : modes_(static_cast<size_t>(p.log_step.empty() ? RowsOfA(p) : p.heads)) {
    loop(static_cast<int64_t>(modes_.size()),
         [&](int64_t h) { modes_[static_cast<size_t>(h)] = DiscretizeHead(p, h); });
  }

  const DiagonalModes& Of(int64_t head) const {
    return modes_[static_cast<size_t>(head) % modes_.size()];
  }

 private:
  std::vector<DiagonalModes> modes_;
};

Complex C(const DiagonalSsmParameters& p, int64_t head, int64_t n) {
  const auto at = static_cast<size_t>(2 * (head * p.modes + n));
  return {p.c[at], p.c[at + 1]};
}

// Writes d loss / d C and d loss / d log_step of a head, and d loss / d A to `da`. g: d loss / d K.
// A complex gradient is d / d Re + i d / d Im: that of x is conj(f'(x)) times that of f(x).
void HeadGradient(const DiagonalSsmParameters& p, int64_t head, const DiagonalModes& modes,
                  std::span<const double> g, const LongConvParameterGradients& gradients,
                  std::span<Complex> da) {
  std::vector<Complex> m0(modes.a.size());
  std::vector<Complex> m1(modes.a.size());
  ModeMoments(modes.da, g, m0, m1);
  const double dt = Step(p, head);
  double step_gradient = 0;
  for (int64_t n = 0; n < p.modes; ++n) {
    const auto i = static_cast<size_t>(n);
    const Complex a = modes.a[i];
    const Complex c = C(p, head, n);
    const Complex dw = std::conj(m0[i]);  // of w = C dB
    const Complex dc = std::conj(modes.db[i]) * dw;
    const Complex slope = p.scale * dt * c * Phi1Slope(dt * a, modes.da[i]);
    const Complex dz = std::conj(c * modes.db[i] * m1[i] + slope * m0[i]);  // of z = dt A
    da[i] = dt * dz;
    // dB is proportional to dt beside its function of z.
    step_gradient += (c * modes.db[i] * m0[i]).real() + dt * (a * std::conj(dz)).real();
    const auto at = static_cast<size_t>(2 * (head * p.modes + n));
    gradients.c[at] = static_cast<float>(dc.real());
    gradients.c[at + 1] = static_cast<float>(dc.imag());
  }
  if (!p.log_step.empty()) {
    gradients.log_step[static_cast<size_t>(head)] = static_cast<float>(step_gradient);
  }
}

}  // namespace

std::vector<double> DiagonalKernel(const DiagonalSsmParameters& p, int64_t length,
                                   const HeadLoop& loop) {
  const AllModes modes(p, loop);
  std::vector<double> kernels(static_cast<size_t>(p.heads * length));
  loop(p.heads, [&](int64_t head) {
    const DiagonalModes& of_head = modes.Of(head);
    std::vector<Complex> w;
    for (int64_t n = 0; n < p.modes; ++n) {
      w.push_back(C(p, head, n) * of_head.db[static_cast<size_t>(n)]);
    }
    SumModes(of_head.da, w,
             std::span(kernels).subspan(static_cast<size_t>(head * length),
                                        static_cast<size_t>(length)));
  });
  return kernels;
}

DiagonalRecurrence RecurrenceOfHead(const DiagonalSsmParameters& p, int64_t head) {
  DiagonalModes modes = DiscretizeHead(p, head);
  DiagonalRecurrence recurrence = {.a = std::move(modes.da), .w = std::move(modes.db)};
  for (int64_t n = 0; n < p.modes; ++n) recurrence.w[static_cast<size_t>(n)] *= C(p, head, n);
  return recurrence;
}

void DiagonalKernelGradient(const DiagonalSsmParameters& p, std::span<const double> dk,
                            int64_t length, const LongConvParameterGradients& gradients,
                            const HeadLoop& loop) {
  const AllModes modes(p, loop);
  const auto n = static_cast<size_t>(p.modes);
  std::vector<Complex> da(static_cast<size_t>(p.heads) * n);
  loop(p.heads, [&](int64_t head) {
    HeadGradient(p, head, modes.Of(head),
                 dk.subspan(static_cast<size_t>(head * length), static_cast<size_t>(length)),
                 gradients, std::span(da).subspan(static_cast<size_t>(head) * n, n));
  });
  const int64_t rows = RowsOfA(p);
  for (int64_t i = 0; i < rows * p.modes; ++i) {
    Complex sum = 0;
    for (size_t at = static_cast<size_t>(i); at < da.size(); at += static_cast<size_t>(rows) * n) {
      sum += da[at];
    }
    StoreStateGradient(p, i, StateMatrix(p, i), sum, gradients);
  }
}

}  // namespace hippodrome
