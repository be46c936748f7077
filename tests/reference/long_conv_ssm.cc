#include "tests/reference/long_conv_ssm.h"

#include "tests/reference/diagonal_ssm.h"
#include "tests/reference/nplr_ssm.h"

namespace hippodrome::reference {

std::unique_ptr<LongConvSsm> MakeLongConvSsm(const LongConvParameters& parameters,
                                             int64_t longest) {
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    return std::make_unique<NplrSsm>(*nplr, longest);
  }
  return std::make_unique<DiagonalSsm>(std::get<DiagonalSsmParameters>(parameters), longest);
}

}  // namespace hippodrome::reference
