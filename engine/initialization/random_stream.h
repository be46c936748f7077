// The random numbers of one initial tensor: a pure function of (seed, name), so that a tensor's
// values do not depend on which other tensors a model has.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_RANDOM_STREAM_H_
#define HIPPODROME_ENGINE_INITIALIZATION_RANDOM_STREAM_H_

#include <cstdint>
#include <string>

#include "kernels/counter_uniform.h"

namespace hippodrome {

class RandomStream {
 public:
  RandomStream(uint64_t seed, const std::string& name);

  // In [low, high).
  double Uniform(double low, double high);
  // Mean 0, variance 1.
  double Normal();
  // The same given that it lies in [-2, 2], and scaled so that the variance is 1 again.
  double TruncatedNormal();

 private:
  double Next() { return CounterUniform(seed_, position_++); }

  uint64_t seed_;
  uint64_t position_ = 0;
  double spare_ = 0;  // the second of a pair of normal numbers
  bool has_spare_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_RANDOM_STREAM_H_
