#include "tools/train/data/numpy_generator.h"

#include <array>
#include <bit>
#include <cstddef>

namespace hippodrome {
namespace {

// SeedSequence: entropy is hashed into a pool of four words, and the pool into any number of them.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    // A seed below 2^32 is one word; what it does not fill hashes as 0.
    const std::array<uint32_t, 4> entropy = {static_cast<uint32_t>(seed),
                                             static_cast<uint32_t>(seed >> 32)};
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = HashIn(entropy[i]);
    for (size_t from = 0; from < pool_.size(); ++from) {
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = Mix(pool_[to], HashIn(pool_[from]));
      }
    }
  }

  uint64_t Next() {
    const uint64_t low = HashOut(pool_[next_++ % pool_.size()]);
    const uint64_t high = HashOut(pool_[next_++ % pool_.size()]);
    return high << 32 | low;
  }

 private:
  static uint32_t Hash(uint32_t value, uint32_t multiplier, uint32_t& constant) {
    value ^= constant;
    constant *= multiplier;
    value *= constant;
    return value ^ value >> 16;
  }
  uint32_t HashIn(uint32_t value) { return Hash(value, 0x931e8875u, in_); }
  uint32_t HashOut(uint32_t value) { return Hash(value, 0x58f38dedu, out_); }
  static uint32_t Mix(uint32_t x, uint32_t y) {
    const uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;
    return mixed ^ mixed >> 16;
  }

  std::array<uint32_t, 4> pool_{};
  uint32_t in_ = 0x43b0d7e5u;
  uint32_t out_ = 0x8b51f9ddu;
  size_t next_ = 0;
};

}  // namespace

NumpyGenerator::NumpyGenerator(uint64_t seed) {
  SeedSequence sequence(seed);
  Word128 state = sequence.Next();
  state = state << 64 | sequence.Next();
  increment_ = sequence.Next();
  increment_ = (increment_ << 64 | sequence.Next()) << 1 | 1;
  Step();
  state_ += state;
  Step();
}

void NumpyGenerator::Step() {
  constexpr Word128 kMultiplier = Word128{0x2360ed051fc65da4u} << 64 | 0x4385df649fccf645u;
  state_ = state_ * kMultiplier + increment_;
}

uint64_t NumpyGenerator::Next64() {
  Step();
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

uint32_t NumpyGenerator::Next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const uint64_t bits = Next64();
  has_half_ = true;
  half_ = static_cast<uint32_t>(bits >> 32);
  return static_cast<uint32_t>(bits);
}

double NumpyGenerator::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

// Lemire's method: the upper half of a product, and another draw where the lower half would make
// some results more likely than others.
int64_t NumpyGenerator::Integer(int64_t n) {
  if (n == 1) return 0;
  const uint32_t range = static_cast<uint32_t>(n);
  const uint32_t threshold = (0u - range) % range;
  uint64_t product = uint64_t{Next32()} * range;
  while (static_cast<uint32_t>(product) < threshold) product = uint64_t{Next32()} * range;
  return static_cast<int64_t>(product >> 32);
}

uint32_t NumpyGenerator::Masked(size_t most) {
  const uint32_t mask = static_cast<uint32_t>(std::bit_ceil(most + 1) - 1);
  uint32_t value = Next32() & mask;
  while (value > most) value = Next32() & mask;
  return value;
}

}  // namespace hippodrome
