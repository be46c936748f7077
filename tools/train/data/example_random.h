// The random numbers of data sets: they are a pure function of their key, so that what one example
// draws does not depend on what others have drawn.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_EXAMPLE_RANDOM_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_EXAMPLE_RANDOM_H_

#include <cstdint>

#include "kernels/counter_uniform.h"

namespace hippodrome {

// SplitMix64 from a state that the key gives.
class ExampleRandom {
 public:
  ExampleRandom(uint64_t seed, uint64_t a, uint64_t b)
      : state_(MixBits(MixBits(MixBits(seed + kGolden) + (a + 1) * kGolden) + (b + 1) * kGolden)) {}

  uint64_t Bits() { return MixBits(state_ += kGolden); }
  // In [0, n); off uniform by less than n / 2^32. REQUIRES: 0 < n <= 2^32.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>((Bits() >> 32) * static_cast<uint64_t>(n) >> 32);
  }
  // In [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

  uint64_t state_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_EXAMPLE_RANDOM_H_
