// An SSM whose state matrix is normal plus low rank, in double precision, as its recurrence with
// dense matrices.
#ifndef HIPPODROME_TESTS_REFERENCE_NPLR_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_NPLR_SSM_H_

#include <complex>
#include <vector>

#include "tests/reference/long_conv_ssm.h"

namespace hippodrome::reference {

class NplrSsm final : public LongConvSsm {
 public:
  NplrSsm(const NplrParameters& p, int64_t longest);

  double Step(int64_t channel, double u, State& x) const override;
  int64_t state_size() const override { return 2 * modes(); }
  void Complete(State& x) const override;

 private:
  // Both halves of the conjugate pairs, 2 M modes.
  struct Channel {
    std::vector<std::complex<double>> da;     // [2 M, 2 M], x_t = dA x_{t-1} + dB u_t
    std::vector<std::complex<double>> db, c;  // y_t = C x_t + D u_t
    double d = 0;
  };

  static Channel MakeChannel(const NplrParameters& p, int64_t index);

  std::vector<Channel> channels_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_NPLR_SSM_H_
