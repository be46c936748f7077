// numpy.random.default_rng(seed), number by number: SeedSequence and PCG64 (XSL-RR), as published
// data sets were drawn with it.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_NUMPY_GENERATOR_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_NUMPY_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hippodrome {

class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint64_t seed);

  // random(), uniform(): in [0, 1).
  double Uniform();
  // integers(n), and the place that choice() without probabilities takes out of n. Draws nothing
  // when n is 1. REQUIRES: 0 < n < 2^32.
  int64_t Integer(int64_t n);
  // shuffle() of a list. REQUIRES: fewer than 2^32 elements.
  template <typename T>
  void Shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i-- > 1;) {
      using std::swap;
      swap(list[i], list[static_cast<size_t>(Masked(i))]);
    }
  }

 private:
  __extension__ using Word128 = unsigned __int128;

  // In [0, most], by throwing away what its mask of ones lets through above.
  uint32_t Masked(size_t most);
  void Step();
  uint64_t Next64();
  // The lower half of 64 bits, then the upper one, whatever is drawn between.
  uint32_t Next32();

  Word128 state_ = 0;
  Word128 increment_ = 0;
  bool has_half_ = false;
  uint32_t half_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_NUMPY_GENERATOR_H_
