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

  void Apply(Tensor u, Direction direction, Tensor y) const override;

 private:
  struct Head {
    std::vector<std::complex<double>> da, db, c;  // s_t = dA s_{t-1} + dB u_t
    double d = 0;                                 // y_t = scale Re sum_n C_n s_t[n] + D u_t
  };

  int64_t channels_per_head_;
  double scale_;
  std::vector<Head> heads_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_DIAGONAL_SSM_H_
