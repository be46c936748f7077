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
  for (size_t i = 0; i < values[1].size() / 2; ++i) {
    const auto head = static_cast<int64_t>(i) / modes % heads;
    const reference::Complex db =
        ssms[static_cast<size_t>(head)].db[i % static_cast<size_t>(modes)];
    const reference::Complex x = reference::Complex(values[1][2 * i], values[1][2 * i + 1]) * db;
    published.diagonal.push_back(static_cast<float>(x.real()));
    published.diagonal.push_back(static_cast<float>(x.imag()));
  }
  return published;
}

}  // namespace hippodrome
