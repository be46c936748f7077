// The random bits of dropout: a pure function of (seed, row, column), the same on every backend, in
// 32-bit operations that vectorise.
#ifndef HIPPODROME_KERNELS_DROPOUT_BITS_H_
#define HIPPODROME_KERNELS_DROPOUT_BITS_H_

#include <cstdint>

#include "kernels/counter_uniform.h"

namespace hippodrome {

// What the bits of a row depend on.
struct DropoutRow {
  uint32_t low, high;
};

constexpr DropoutRow DropoutRowOf(uint64_t seed, int64_t row) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const uint64_t bits =
      MixBits(MixBits(seed + kGolden) + (static_cast<uint64_t>(row) + 1) * kGolden);
  return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
}

// The finaliser of MurmurHash3 on a Weyl sequence that starts at `low`, with `high` mixed in.
inline constexpr uint32_t kDropoutWeyl = 0x9e3779b9u;
inline constexpr uint32_t kDropoutMix1 = 0x85ebca6bu;
inline constexpr uint32_t kDropoutMix2 = 0xc2b2ae35u;

// 32 bits, uniform.
constexpr uint32_t DropoutBits(DropoutRow row, uint32_t column) {
  uint32_t x = row.low + column * kDropoutWeyl;
  x = (x ^ (x >> 16)) * kDropoutMix1;
  x ^= row.high;
  x = (x ^ (x >> 13)) * kDropoutMix2;
  return x ^ (x >> 16);
}

// An element is dropped where its bits are below this: with probability p within 2^-32.
// REQUIRES: 0 <= p < 1.
constexpr uint32_t DropoutThreshold(double p) { return static_cast<uint32_t>(p * 0x1p32); }

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_DROPOUT_BITS_H_
