#include "tests/reference/shared_ssm.h"

#include <algorithm>
#include <cmath>

#include "tests/reference/matrix.h"

namespace hippodrome::reference {

using Complex = std::complex<double>;

SharedSsm::SharedSsm(const SharedSsmParameters& p, int64_t longest)
    : longest_(longest), channels_per_head_(p.channels / p.heads) {
  for (int64_t h = 0; h < p.heads; ++h) {
    Head head;
    const double dt = std::exp(double{p.log_step[h]});
    for (int64_t n = 0; n < p.modes; ++n) {
      const int64_t i = h * p.modes + n;
      const Complex a(std::min(double{p.a_real[i]}, -1e-4), p.a_imag[i]);
      head.da.push_back(std::exp(dt * a));
      head.db.push_back((std::exp(dt * a) - 1.0) / a);
      head.c.emplace_back(p.c[2 * i], p.c[2 * i + 1]);
    }
    head.d = p.d[h];
    heads_.push_back(std::move(head));
  }
}

void SharedSsm::Apply(Tensor u, Direction direction, Tensor y) const {
  const auto place = [&](int64_t t) {
    return direction == Direction::kForward ? t : u.rows - 1 - t;
  };
  for (int64_t c = 0; c < u.cols; ++c) {
    const Head& head = heads_[c / channels_per_head_];
    std::vector<Complex> s(head.da.size());
    for (int64_t t = 0; t < u.rows; ++t) {
      const double u_t = At(u, place(t), c);
      double sum = head.d * u_t;
      for (size_t n = 0; n < s.size(); ++n) {
        s[n] = head.da[n] * s[n] + head.db[n] * u_t;
        sum += (head.c[n] * s[n]).real();
      }
      At(y, place(t), c) = sum;
    }
  }
}

}  // namespace hippodrome::reference
