// Random H3 layers, and what they compute in double precision.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_H3_H3_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CPU_H3_H3_PROBLEM_H_

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/reference/h3_ssm.h"

namespace hippodrome {

struct H3Shape {
  int64_t d_model = 16;
  int64_t head_dim = 1;
  int64_t d_state = 64;
  int64_t n_ssm = 0;  // 0: one per head
  Discretization discretization = Discretization::kBilinear;
  H3OutputOrder output_order = H3OutputOrder::kHeadD2;
};

// Parameters near their initialisation, every one disturbed.
class RandomH3 {
 public:
  explicit RandomH3(const H3Shape& shape, uint32_t seed = 1) : generator_(seed) {
    const int64_t heads = shape.d_model / shape.head_dim;
    const int64_t rows = shape.n_ssm == 0 ? heads : shape.n_ssm;
    const int64_t modes = shape.d_state / 2;
    p_.d_model = shape.d_model;
    p_.head_dim = shape.head_dim;
    p_.d_state = shape.d_state;
    p_.n_ssm = rows;
    p_.discretization = shape.discretization;
    p_.output_order = shape.output_order;
    p_.shift_b = Fill(shape.d_model * shape.d_state, [&](int64_t i) {
      return (i % shape.d_state == 0 ? 1.0 : 0.0) + 0.1 * Uniform(-1, 1);
    });
    p_.shift_c = Fill(shape.d_model * shape.d_state, [&](int64_t) { return Uniform(-0.2, 0.2); });
    p_.shift_d = Fill(shape.d_model, [&](int64_t) { return Uniform(-1, 1); });
    p_.d = Fill(heads, [&](int64_t) { return Uniform(-1, 1); });
    p_.log_dt = Fill(heads, [&](int64_t) { return Uniform(std::log(0.001), std::log(0.1)); });
    p_.inv_a_real = Fill(rows * modes, [&](int64_t) { return std::log(0.5) + Uniform(-0.3, 0.3); });
    p_.a_imag = Fill(rows * modes,
                     [&](int64_t i) { return 3.14159 * double(i % modes) * Uniform(0.9, 1); });
    p_.b = Fill(rows * modes * 2, [&](int64_t i) { return (i + 1) % 2 + 0.1 * Uniform(-1, 1); });
    p_.c = Fill(heads * modes * 2, [&](int64_t) { return Uniform(-1, 1); });
  }

  const H3Parameters& parameters() const { return p_; }

 private:
  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator_);
  }
  template <typename Value>
  std::span<const float> Fill(int64_t count, Value value) {
    std::vector<float>& values = *storage_.emplace_back(std::make_shared<std::vector<float>>());
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(value(i)));
    return values;
  }

  std::mt19937 generator_;
  H3Parameters p_;
  std::vector<std::shared_ptr<std::vector<float>>> storage_;
};

// What a layer computes from an empty state, with the scale of the rounding errors of each number:
// the bound of the contract without its constant and its roundoff.
struct H3Expectation {
  std::vector<double> o;            // [T, d]
  std::vector<double> o_scale;      // [d] max over time of sum |K|_2 |kv|_2 |q|
  std::vector<double> diagonal;     // as PublishedState
  std::vector<double> state_scale;  // |dB| |dA^.|_2 |kv|_2, [rows, M] in export order
  std::vector<double> shift;
};

// qkv: [T, 3 d].
inline H3Expectation ExpectedH3(const H3Parameters& p, const std::vector<float>& qkv) {
  const int64_t d = p.d_model;
  const int64_t hd = p.head_dim;
  const int64_t heads = d / hd;
  const int64_t modes = p.d_state / 2;
  const int64_t steps = static_cast<int64_t>(qkv.size()) / (3 * d);
  const auto at = [&](int64_t t, int64_t column) {
    return double{qkv[static_cast<size_t>(t * 3 * d + column)]};
  };
  H3Expectation e;
  e.o.resize(static_cast<size_t>(steps * d));
  e.o_scale.resize(static_cast<size_t>(d));
  e.diagonal.resize(static_cast<size_t>(d * hd * modes * 2));
  e.state_scale.resize(static_cast<size_t>(d * hd * modes));
  // ks, and the sum of the magnitudes it is made of.
  std::vector<double> ks(static_cast<size_t>(steps * d));
  std::vector<double> magnitude(static_cast<size_t>(steps * d));
  for (int64_t c = 0; c < d; ++c) {
    const reference::H3ShiftSsm ssm = reference::Shift(p, c);
    std::vector<double> impulse;
    std::vector<double> x(static_cast<size_t>(p.d_state));
    for (int64_t j = 0; j < p.d_state; ++j) impulse.push_back(ssm.Step(j == 0 ? 1 : 0, x));
    x.assign(x.size(), 0);
    for (int64_t t = 0; t < steps; ++t) {
      ks[static_cast<size_t>(t * d + c)] = ssm.Step(at(t, d + c), x);
      for (int64_t j = 0; j <= std::min(t, p.d_state - 1); ++j) {
        magnitude[static_cast<size_t>(t * d + c)] +=
            std::abs(impulse[static_cast<size_t>(j)] * at(t - j, d + c));
      }
    }
    e.shift.insert(e.shift.end(), x.begin(), x.end());
  }
  for (int64_t row = 0; row < d * hd; ++row) {
    const int64_t head = row / (hd * hd);
    const int64_t key = row / hd;
    const int64_t value = head * hd + row % hd;
    const int64_t out =
        p.output_order == H3OutputOrder::kHeadD2 ? value : value % hd * heads + value / hd;
    const reference::H3DiagonalSsm ssm = reference::Discretize(p, head);
    std::vector<reference::Complex> impulse(static_cast<size_t>(modes));
    std::vector<reference::Complex> x(static_cast<size_t>(modes));
    std::vector<double> mode_norm2(static_cast<size_t>(modes));
    double kernel2 = 0;
    double kv2 = 0;
    double q_max = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const double k = ssm.Step(t == 0 ? 1 : 0, impulse);
      kernel2 += k * k;
      for (size_t n = 0; n < impulse.size(); ++n) mode_norm2[n] += std::norm(impulse[n]);
      const double q = at(t, key);
      const double v = at(t, 2 * d + value);
      e.o[static_cast<size_t>(t * d + out)] +=
          q * ssm.Step(ks[static_cast<size_t>(t * d + key)] * v, x);
      kv2 += std::pow(magnitude[static_cast<size_t>(t * d + key)] * v, 2);
      q_max = std::max(q_max, std::abs(q));
    }
    // D and the modes may cancel in K, but not their roundings.
    kernel2 += ssm.d * ssm.d;
    for (size_t n = 0; n < ssm.c.size(); ++n) kernel2 += std::norm(2.0 * ssm.c[n]) * mode_norm2[n];
    e.o_scale[static_cast<size_t>(out)] += std::sqrt(kernel2 * kv2) * q_max;
    for (int64_t n = 0; n < modes; ++n) {
      const int64_t i = ((row % (hd * hd)) * heads + head) * modes + n;
      const auto mode = static_cast<size_t>(n);
      e.diagonal[static_cast<size_t>(2 * i)] = x[mode].real();
      e.diagonal[static_cast<size_t>(2 * i + 1)] = x[mode].imag();
      e.state_scale[static_cast<size_t>(i)] = std::sqrt(mode_norm2[mode] * kv2);
    }
  }
  return e;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_H3_H3_PROBLEM_H_
