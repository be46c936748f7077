// The SSM of an encoder, in double precision, as its recurrence.
#ifndef HIPPODROME_TESTS_REFERENCE_SHARED_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_SHARED_SSM_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

class SharedSsm final : public LongConvWeights {
 public:
  SharedSsm(const SharedSsmParameters& p, int64_t longest);

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override { return 0; }

  // y over the rows of one sequence.  u, y: [T, d].
  void Apply(Tensor u, Direction direction, Tensor y) const;

 private:
  struct Head {
    std::vector<std::complex<double>> da, db, c;  // s_t = dA s_{t-1} + dB u_t
    double d = 0;                                 // y_t = Re sum_n C_n s_t[n] + D u_t
  };

  int64_t longest_;
  int64_t channels_per_head_;
  std::vector<Head> heads_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_SHARED_SSM_H_
