// A diagonal SSM, in double precision, as its recurrence.
#ifndef HIPPODROME_TESTS_REFERENCE_DIAGONAL_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_DIAGONAL_SSM_H_

#include <complex>
#include <vector>

#include "tests/reference/long_conv_ssm.h"

namespace hippodrome::reference {

class DiagonalSsm final : public LongConvSsm {
 public:
  DiagonalSsm(const DiagonalSsmParameters& p, int64_t longest);

  double Step(int64_t channel, double u, State& x) const override;

 private:
  struct Head {
    std::vector<std::complex<double>> da, db, c;  // x_t = dA x_{t-1} + u_t
    double d = 0;                                 // y_t = scale Re sum_n C_n dB_n x_t[n] + D u_t
  };

  int64_t channels_per_head_;
  double scale_;
  std::vector<Head> heads_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_DIAGONAL_SSM_H_
