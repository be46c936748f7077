// The SSM of a convolution or of a decoder's layer, in double precision.
#ifndef HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

// Convolutions, sequences and steps all take it step by step.
class LongConvSsm : public LongConvWeights, public SsmWeights {
 public:
  using State = std::vector<std::complex<double>>;  // of one channel

  LongConvSsm(int64_t longest, int64_t channels, int64_t modes)
      : longest_(longest), channels_(channels), modes_(modes) {}

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override { return 0; }
  int64_t channels() const { return channels_; }
  int64_t modes() const { return modes_; }

  // y of the next input of a channel. An empty state is all zero.
  virtual double Step(int64_t channel, double u, State& x) const = 0;
  virtual int64_t state_size() const { return modes_; }
  // The first modes() numbers of a state are all there is to it; sets the others.
  virtual void Complete(State& /*x*/) const {}

  // y over the rows of one sequence.  u, y: [T, d].
  void Apply(Tensor u, Direction direction, Tensor y) const;

 private:
  int64_t longest_;
  int64_t channels_;
  int64_t modes_;
};

std::unique_ptr<LongConvSsm> MakeLongConvSsm(const LongConvParameters& parameters, int64_t longest);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LONG_CONV_SSM_H_
