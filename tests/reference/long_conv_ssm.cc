#include "tests/reference/long_conv_ssm.h"

#include "tests/reference/diagonal_ssm.h"
#include "tests/reference/matrix.h"
#include "tests/reference/nplr_ssm.h"

namespace hippodrome::reference {

void LongConvSsm::Apply(Tensor u, Direction direction, Tensor y) const {
  for (int64_t c = 0; c < u.cols; ++c) {
    State x(static_cast<size_t>(state_size()));
    for (int64_t t = 0; t < u.rows; ++t) {
      const int64_t row = direction == Direction::kForward ? t : u.rows - 1 - t;
      At(y, row, c) = Step(c, At(u, row, c), x);
    }
  }
}

std::unique_ptr<LongConvSsm> MakeLongConvSsm(const LongConvParameters& parameters,
                                             int64_t longest) {
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    return std::make_unique<NplrSsm>(*nplr, longest);
  }
  return std::make_unique<DiagonalSsm>(std::get<DiagonalSsmParameters>(parameters), longest);
}

}  // namespace hippodrome::reference
