// Matrices of reproducible random values for kernel tests.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_RANDOM_MATRIX_H_
#define HIPPODROME_TESTS_KERNELS_CPU_RANDOM_MATRIX_H_

#include <random>
#include <vector>

#include "kernels/cpu/base/memory.h"

namespace hippodrome {

inline constexpr double kUnitRoundoff = 0x1p-24;  // of float

// The error bound factor of n roundings.
inline double Gamma(int64_t n) {
  const double nu = static_cast<double>(n) * kUnitRoundoff;
  return nu / (1 - nu);
}

// `n` values, uniform in [-scale, scale).
inline std::vector<float> RandomValues(int64_t n, uint32_t seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = uniform(generator);
  return values;
}

// A matrix whose rows are `gap` elements apart and start `gap` elements after a 64-byte border.
class StridedMatrix {
 public:
  StridedMatrix(int64_t rows, int64_t cols, int64_t gap)
      : memory_(cpu::NewMatrix(rows + 1, cols + gap, DType::kF32)),
        view_(memory_.view.Rows(0, rows).Cols(gap, cols)) {}
  StridedMatrix(int64_t rows, int64_t cols, int64_t gap, const std::vector<float>& values)
      : StridedMatrix(rows, cols, gap) {
    cpu::CopyIn(values, view_);
  }

  Tensor view() const { return view_; }
  std::vector<float> values() const {
    std::vector<float> out(static_cast<size_t>(view_.rows * view_.cols));
    cpu::CopyOut(view_, out);
    return out;
  }

 private:
  OwnedTensor memory_;
  Tensor view_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_RANDOM_MATRIX_H_
