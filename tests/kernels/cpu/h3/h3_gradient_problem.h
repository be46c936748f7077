// The gradients of a random H3 layer over whole sequences in double precision, as direct sums.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_H3_H3_GRADIENT_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CPU_H3_H3_GRADIENT_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ssm/h3_ssm.h"
#include "tests/kernels/cpu/h3/h3_problem.h"

namespace hippodrome {

// Values with the scale of their rounding errors: products of the norms of what they are made of,
// as the errors of transforms are global.
struct H3GradientExpectation {
  std::vector<double> o;            // [B T, d]
  std::vector<double> dqkv;         // [B T, 3 d]
  std::vector<double> dtaps;        // [d, N]
  std::vector<double> dk;           // [H, T]
  std::vector<double> o_scale;      // [d]
  std::vector<double> dqkv_scale;   // [3 d]
  std::vector<double> dtaps_scale;  // [d]
  std::vector<double> dk_scale;     // [H]
};

class H3GradientSums {
 public:
  // qkv: [B T, 3 d]; d_o: [B T, d].
  H3GradientSums(const H3Parameters& p, const std::vector<float>& qkv,
                 const std::vector<float>& d_o, int64_t sequences)
      : p_(p), qkv_(qkv), d_o_(d_o) {
    rows_ = std::ssize(d_o) / p.d_model;
    steps_ = rows_ / sequences;
    taps_ = H3Taps(p);
    for (int64_t c = 0; c < p.d_model; ++c) {
      taps_[Index(c * p.d_state)] += p.shift_d[Index(c)];
    }
    kernels_ = H3Kernels(p, steps_);
    for (int64_t h = 0; h < p.d_model / p.head_dim; ++h)
      kernels_[Index(h * steps_)] += p.d[Index(h)];
    const auto d = Index(p.d_model);
    const auto heads = Index(p.d_model / p.head_dim);
    e_.o.resize(Index(rows_) * d);
    e_.dqkv.resize(3 * Index(rows_) * d);
    e_.dtaps.resize(d * Index(p.d_state));
    e_.dk.resize(heads * Index(steps_));
    e_.o_scale.resize(d);
    e_.dqkv_scale.resize(3 * d);
    e_.dtaps_scale.resize(d);
    e_.dk_scale.resize(heads);
    for (int64_t b = 0; b < sequences; ++b) AddSequence(b);
  }

  const H3GradientExpectation& expectation() const { return e_; }

 private:
  using Series = std::vector<double>;

  static size_t Index(int64_t i) { return static_cast<size_t>(i); }
  static double Norm(const Series& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
  }
  static double Largest(const Series& x) {
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    return largest;
  }
  static Series Times(const Series& a, const Series& b) {
    Series product(a.size());
    for (size_t t = 0; t < a.size(); ++t) product[t] = a[t] * b[t];
    return product;
  }
  static Series Convolve(const Series& k, const Series& x) {
    Series y(x.size());
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t j = 0; j <= t && j < k.size(); ++j) y[t] += k[j] * x[t - j];
    }
    return y;
  }
  static Series Correlate(const Series& k, const Series& y) {
    Series x(y.size());
    for (size_t t = 0; t < y.size(); ++t) {
      for (size_t j = 0; t + j < y.size() && j < k.size(); ++j) x[t] += k[j] * y[t + j];
    }
    return x;
  }
  // The gradient of `count` taps.
  static Series OfTaps(const Series& x, const Series& dy, size_t count) {
    Series taps(count);
    for (size_t j = 0; j < std::min(count, x.size()); ++j) {
      for (size_t t = j; t < x.size(); ++t) taps[j] += dy[t] * x[t - j];
    }
    return taps;
  }
  static Series Part(const Series& x, int64_t first, int64_t count) {
    return {x.begin() + first, x.begin() + first + count};
  }
  Series Column(const std::vector<float>& x, int64_t cols, int64_t b, int64_t column) const {
    Series series;
    for (int64_t t = 0; t < steps_; ++t)
      series.push_back(x[Index((b * steps_ + t) * cols + column)]);
    return series;
  }
  void AddTo(std::vector<double>& matrix, int64_t cols, int64_t b, int64_t column,
             const Series& x) const {
    for (int64_t t = 0; t < steps_; ++t)
      matrix[Index((b * steps_ + t) * cols + column)] += x[Index(t)];
  }

  void AddSequence(int64_t b) {
    const int64_t d = p_.d_model;
    const int64_t hd = p_.head_dim;
    const int64_t heads = d / hd;
    const double root = std::sqrt(double(steps_));
    for (int64_t c = 0; c < d; ++c) {
      const int64_t h = c / hd;
      const Series taps = Part(taps_, c * p_.d_state, p_.d_state);
      const Series kernel = Part(kernels_, h * steps_, steps_);
      const Series q = Column(qkv_, 3 * d, b, c);
      const Series k = Column(qkv_, 3 * d, b, d + c);
      const Series ks = Convolve(taps, k);
      const double ks_scale = Norm(taps) * Norm(k);
      Series dks(Index(steps_));
      double dks_scale = 0;
      for (int64_t d2 = 0; d2 < hd; ++d2) {
        const int64_t value = h * hd + d2;
        const int64_t out = p_.output_order == H3OutputOrder::kHeadD2 ? value : d2 * heads + h;
        const Series v = Column(qkv_, 3 * d, b, 2 * d + value);
        const Series d_o = Column(d_o_, d, b, out);
        const Series kv = Times(ks, v);
        const double kv_scale = root * ks_scale * Largest(v);
        const Series y = Convolve(kernel, kv);
        const double y_scale = Norm(kernel) * kv_scale;
        const Series r = Times(q, d_o);
        const Series dkv = Correlate(kernel, r);
        const double dkv_scale = Norm(kernel) * Norm(r);
        AddTo(e_.o, d, b, out, Times(q, y));
        AddTo(e_.dqkv, 3 * d, b, c, Times(d_o, y));
        AddTo(e_.dqkv, 3 * d, b, 2 * d + value, Times(dkv, ks));
        for (size_t t = 0; t < dks.size(); ++t) dks[t] += dkv[t] * v[t];
        dks_scale += dkv_scale * Largest(v);
        const Series dk = OfTaps(kv, r, Index(steps_));
        for (int64_t l = 0; l < steps_; ++l) e_.dk[Index(h * steps_ + l)] += dk[Index(l)];
        e_.dk_scale[Index(h)] += Norm(r) * kv_scale;
        e_.o_scale[Index(out)] += Largest(q) * y_scale;
        e_.dqkv_scale[Index(c)] += Largest(d_o) * y_scale;
        e_.dqkv_scale[Index(2 * d + value)] += dkv_scale * ks_scale;
      }
      AddTo(e_.dqkv, 3 * d, b, d + c, Correlate(taps, dks));
      const Series dtaps = OfTaps(k, dks, Index(p_.d_state));
      for (int64_t j = 0; j < p_.d_state; ++j)
        e_.dtaps[Index(c * p_.d_state + j)] += dtaps[Index(j)];
      e_.dqkv_scale[Index(d + c)] += Norm(taps) * root * dks_scale;
      e_.dtaps_scale[Index(c)] += Norm(k) * root * dks_scale;
    }
  }

  const H3Parameters& p_;
  const std::vector<float>& qkv_;
  const std::vector<float>& d_o_;
  int64_t rows_ = 0;
  int64_t steps_ = 0;
  Series taps_;
  Series kernels_;
  H3GradientExpectation e_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_H3_H3_GRADIENT_PROBLEM_H_
