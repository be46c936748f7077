#include "tests/reference/published_state.h"

#include "tests/reference/h3_ssm.h"

namespace hippodrome {

PublishedState Published(const H3Parameters& parameters, const StateValues& values) {
  const int64_t heads = parameters.d_model / parameters.head_dim;
  const int64_t modes = parameters.d_state / 2;
  PublishedState published;
  const float* input = values[0].data();
  for (int64_t c = 0; c < parameters.d_model; ++c) {
    const reference::H3ShiftSsm ssm = reference::Shift(parameters, c);
    std::vector<double> x(static_cast<size_t>(parameters.d_state));
    for (int64_t n = 0; n < parameters.d_state; ++n) ssm.Step(*input++, x);
    published.shift.insert(published.shift.end(), x.begin(), x.end());
  }
  std::vector<reference::H3DiagonalSsm> ssms;
  for (int64_t h = 0; h < heads; ++h) ssms.push_back(reference::Discretize(parameters, h));
  const auto rows = std::ssize(values[1]) / (2 * modes);
  const auto pending = std::ssize(values[2]) / rows;
  for (int64_t i = 0; i < rows * modes; ++i) {
    const reference::H3DiagonalSsm& ssm = ssms[static_cast<size_t>(i / modes % heads)];
    const auto n = static_cast<size_t>(i % modes);
    const auto at = static_cast<size_t>(2 * i);
    reference::Complex x = reference::Complex(values[1][at], values[1][at + 1]) * ssm.db[n];
    for (int64_t t = 0; t < pending; ++t) {
      x = ssm.da[n] * x + ssm.db[n] * double{values[2][static_cast<size_t>(t * rows + i / modes)]};
    }
    published.diagonal.push_back(static_cast<float>(x.real()));
    published.diagonal.push_back(static_cast<float>(x.imag()));
  }
  return published;
}

}  // namespace hippodrome
