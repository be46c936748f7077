// The random numbers of sampling: a pure function of (seed, position), so that a sequence's draws
// do not depend on what else the program has drawn.
#ifndef HIPPODROME_KERNELS_COUNTER_UNIFORM_H_
#define HIPPODROME_KERNELS_COUNTER_UNIFORM_H_

#include <cstdint>

namespace hippodrome {

// The finaliser of SplitMix64: a bijection whose output bits each depend on all input bits.
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A number in [0, 1), uniform over multiples of 2^-53.
constexpr double CounterUniform(uint64_t seed, uint64_t position) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const uint64_t bits = MixBits(MixBits(seed + kGolden) + (position + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_COUNTER_UNIFORM_H_
