#include "tests/reference/training/h3_backward.h"

#include <algorithm>

namespace hippodrome::reference {
namespace {

using Series = std::vector<double>;  // one number for each token

// What an SSM without its skip makes of 1, 0, 0, ...: its kernel.
template <typename Ssm, typename State>
Series ImpulseResponse(Ssm ssm, State x, int64_t length) {
  ssm.d = 0;
  Series kernel;
  for (int64_t t = 0; t < length; ++t) kernel.push_back(ssm.Step(t == 0 ? 1 : 0, x));
  return kernel;
}

// y_t = sum_{l <= t} K[l] u_{t-l} + D u_t.
Series Convolve(const Series& kernel, double d, const Series& u) {
  Series y(u.size());
  for (size_t t = 0; t < u.size(); ++t) {
    y[t] = d * u[t];
    for (size_t l = 0; l <= t; ++l) y[t] += kernel[l] * u[t - l];
  }
  return y;
}

// Of the same: du_t = sum_{s >= t} K[s - t] dy_s + D dy_t.
Series Correlate(const Series& kernel, double d, const Series& dy) {
  Series du(dy.size());
  for (size_t t = 0; t < dy.size(); ++t) {
    du[t] = d * dy[t];
    for (size_t s = t; s < dy.size(); ++s) du[t] += kernel[s - t] * dy[s];
  }
  return du;
}

// Of the same: dK[l] += sum_t dy_t u_{t-l} for l < dk.size(), dD += sum_t dy_t u_t.
void AddKernelGradient(const Series& dy, const Series& u, std::span<double> dk, double& dd) {
  for (size_t t = 0; t < u.size(); ++t) {
    for (size_t l = 0; l <= std::min(t, dk.size() - 1); ++l) dk[l] += dy[t] * u[t - l];
    dd += dy[t] * u[t];
  }
}

Series Column(Tensor x, int64_t column) {
  Series series;
  for (int64_t t = 0; t < x.rows; ++t) series.push_back(At(x, t, column));
  return series;
}

Series Times(Series a, const Series& b) {
  for (size_t t = 0; t < a.size(); ++t) a[t] *= b[t];
  return a;
}

void AddColumn(const Series& series, Matrix& to, int64_t column) {
  for (int64_t t = 0; t < to.rows; ++t) to(t, column) += series[t];
}

// The shift SSM of every channel: its output, and from the gradient of that the others.
class ShiftPart {
 public:
  ShiftPart(const H3Layer& layer, Tensor qkv, int64_t channel)
      : skip_(layer.shift(channel).d),
        taps_(ImpulseResponse(layer.shift(channel), Series(layer.d_state()), qkv.rows)),
        k_(Column(qkv, layer.d() + channel)) {}

  Series Output() const { return Convolve(taps_, skip_, k_); }
  Series Backward(const Series& dks, std::span<double> dtaps, double& dskip) const {
    AddKernelGradient(dks, k_, dtaps, dskip);
    return Correlate(taps_, skip_, dks);
  }

 private:
  double skip_;
  Series taps_, k_;
};

}  // namespace

Matrix H3Backward(const H3Layer& layer, Tensor qkv, Tensor d_o, H3KernelGradients& sums) {
  const int64_t d = layer.d();
  const int64_t tokens = qkv.rows;
  Matrix dqkv(tokens, 3 * d);
  for (int64_t h = 0; h < layer.heads(); ++h) {
    const H3DiagonalSsm& ssm = layer.diagonal(h);
    const Series kernel = ImpulseResponse(ssm, std::vector<Complex>(ssm.da.size()), tokens);
    Series& dk = sums.k[h];
    dk.resize(std::max(dk.size(), static_cast<size_t>(tokens)));
    for (int64_t d1 = 0; d1 < layer.head_dim(); ++d1) {
      const int64_t key = h * layer.head_dim() + d1;
      const ShiftPart shift(layer, qkv, key);
      const Series q = Column(qkv, key);
      const Series ks = shift.Output();
      Series dks(tokens);
      for (int64_t d2 = 0; d2 < layer.head_dim(); ++d2) {
        const int64_t value = h * layer.head_dim() + d2;
        const Series v = Column(qkv, 2 * d + value);
        const Series kv = Times(ks, v);
        const Series y = Convolve(kernel, ssm.d, kv);
        const Series g = Column(d_o, layer.OutputChannel(h, d2));

        const Series r = Times(q, g);
        const Series dkv = Correlate(kernel, ssm.d, r);
        AddKernelGradient(r, kv, dk, sums.d[h]);
        AddColumn(Times(y, g), dqkv, key);               // dq
        AddColumn(Times(dkv, ks), dqkv, 2 * d + value);  // dv
        for (int64_t t = 0; t < tokens; ++t) dks[t] += dkv[t] * v[t];
      }
      const std::span<double> dtaps(&sums.taps(key, 0), layer.d_state());
      AddColumn(shift.Backward(dks, dtaps, sums.shift_d[key]), dqkv, d + key);
    }
  }
  return dqkv;
}

}  // namespace hippodrome::reference
