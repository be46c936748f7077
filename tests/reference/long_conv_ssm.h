// An SSM that LongConv() runs over sequences, in double precision.
#ifndef HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_

#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace hippodrome::reference {

class LongConvSsm : public LongConvWeights {
 public:
  explicit LongConvSsm(int64_t longest) : longest_(longest) {}

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override { return 0; }

  // y over the rows of one sequence.  u, y: [T, d].
  virtual void Apply(Tensor u, Direction direction, Tensor y) const = 0;

 protected:
  // The row of time t, in the order of `direction`.
  static int64_t Row(Tensor u, Direction direction, int64_t t) {
    return direction == Direction::kForward ? t : u.rows - 1 - t;
  }

 private:
  int64_t longest_;
};

std::unique_ptr<LongConvSsm> MakeLongConvSsm(const LongConvParameters& parameters, int64_t longest);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_
