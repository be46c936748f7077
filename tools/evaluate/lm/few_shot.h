// Which examples stand before a question.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_FEW_SHOT_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_FEW_SHOT_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace hippodrome {

// Draws as Python's random.Random(seed).sample(range(n), k) does, call after call, so that examples
// are those of lm-evaluation-harness with the same seed.
class PythonSampler {
 public:
  explicit PythonSampler(uint32_t seed);

  // `count` different numbers below `size`, in the order drawn. REQUIRES: count <= size < 2^32.
  std::vector<size_t> Sample(size_t size, size_t count);

 private:
  uint32_t Below(uint32_t size);

  std::mt19937 random_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_FEW_SHOT_H_
