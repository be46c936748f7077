// Element access for the reference.
#ifndef HIPPODROME_TESTS_REFERENCE_MATRIX_H_
#define HIPPODROME_TESTS_REFERENCE_MATRIX_H_

#include <cassert>
#include <cstdint>
#include <vector>

#include "kernels/tensor.h"

namespace hippodrome::reference {

struct Matrix {
  Matrix() = default;
  Matrix(int64_t rows, int64_t cols) : rows(rows), cols(cols), values(rows * cols) {}

  double& operator()(int64_t r, int64_t c) {
    assert(r >= 0 && r < rows && c >= 0 && c < cols);
    return values[r * cols + c];
  }
  double operator()(int64_t r, int64_t c) const {
    assert(r >= 0 && r < rows && c >= 0 && c < cols);
    return values[r * cols + c];
  }

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<double> values;
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

// f(r, c) for every element.
template <typename F>
void ForEach(const Tensor& t, F f) {
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) f(r, c);
  }
}

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_MATRIX_H_
