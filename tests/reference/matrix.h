// Element access for the reference.
#ifndef HIPPODROME_TESTS_REFERENCE_MATRIX_H_
#define HIPPODROME_TESTS_REFERENCE_MATRIX_H_

#include <cassert>
#include <cstdint>
#include <vector>

#include "kernels/tensor.h"

namespace hippodrome::reference {

struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<double> values;

  double operator()(int64_t r, int64_t c) const {
    assert(r >= 0 && r < rows && c >= 0 && c < cols);
    return values[r * cols + c];
  }
};

inline double& At(const Tensor& t, int64_t r, int64_t c) {
  assert(t.dtype == DType::kF64 && r >= 0 && r < t.rows && c >= 0 && c < t.cols);
  return static_cast<double*>(t.data)[r * t.stride + c];
}

inline int32_t& IndexAt(const Tensor& t, int64_t r, int64_t c) {
  assert(t.dtype == DType::kI32 && r >= 0 && r < t.rows && c >= 0 && c < t.cols);
  return static_cast<int32_t*>(t.data)[r * t.stride + c];
}

inline void Zero(const Tensor& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) At(t, r, c) = 0;
  }
}

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_MATRIX_H_
