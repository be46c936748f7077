#include "tools/evaluate/lm/few_shot.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

namespace hippodrome {
namespace {

// Python seeds by init_by_array(key) of Matsumoto and Nishimura, here of a key of one word.
class SeedByArray {
 public:
  using result_type = uint32_t;
  explicit SeedByArray(uint32_t key) : key_(key) {}

  template <typename Iterator>
  void generate(Iterator begin, Iterator end) {  // NOLINT(readability-identifier-naming)
    const std::span<uint32_t> s(&*begin, static_cast<size_t>(end - begin));
    s[0] = 19650218;
    for (uint32_t i = 1; i < s.size(); ++i) s[i] = 1812433253 * Mixed(s[i - 1]) + i;
    size_t i = 1;
    const auto next = [&] {
      if (++i < s.size()) return;
      s[0] = s.back();
      i = 1;
    };
    for (size_t k = 0; k < s.size(); ++k, next()) {
      s[i] = (s[i] ^ (Mixed(s[i - 1]) * 1664525)) + key_;
    }
    for (size_t k = 1; k < s.size(); ++k, next()) {
      s[i] = (s[i] ^ (Mixed(s[i - 1]) * 1566083941)) - static_cast<uint32_t>(i);
    }
    s[0] = 0x80000000;
  }

 private:
  static uint32_t Mixed(uint32_t x) { return x ^ (x >> 30); }

  uint32_t key_;
};

// Up to which size sample() moves all numbers about, rather than draw again what it has.
size_t LargestPool(size_t count) {
  size_t size = 21;
  if (count > 5) {
    size_t power = 4;
    while (power < 3 * count) power *= 4;
    size += power;
  }
  return size;
}

}  // namespace

PythonSampler::PythonSampler(uint32_t seed) {
  SeedByArray sequence(seed);
  random_.seed(sequence);
}

uint32_t PythonSampler::Below(uint32_t size) {
  const int unused = 32 - std::bit_width(size);
  uint32_t drawn = 0;
  do {
    drawn = static_cast<uint32_t>(random_()) >> unused;
  } while (drawn >= size);
  return drawn;
}

std::vector<size_t> PythonSampler::Sample(size_t size, size_t count) {
  std::vector<size_t> sample;
  if (size <= LargestPool(count)) {
    std::vector<size_t> pool(size);
    std::iota(pool.begin(), pool.end(), 0);
    for (size_t i = 0; i < count; ++i) {
      const size_t place = Below(static_cast<uint32_t>(size - i));
      sample.push_back(pool[place]);
      pool[place] = pool[size - i - 1];
    }
    return sample;
  }
  while (sample.size() < count) {
    const size_t drawn = Below(static_cast<uint32_t>(size));
    if (std::ranges::find(sample, drawn) == sample.end()) sample.push_back(drawn);
  }
  return sample;
}

}  // namespace hippodrome
