// Matrices of weights, and one row of their product.
#ifndef HIPPODROME_TESTS_REFERENCE_LINEAR_H_
#define HIPPODROME_TESTS_REFERENCE_LINEAR_H_

#include <utility>

#include "kernels/backend.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

class LinearMatrix final : public LinearWeights {
 public:
  LinearMatrix(Matrix w, DType dtype) : w(std::move(w)), dtype(dtype) {}

  int64_t out() const override { return w.rows; }
  int64_t in() const override { return w.cols; }
  int64_t bytes() const override { return static_cast<int64_t>(w.values.size() * sizeof(double)); }

  Matrix w;  // [out, in], rounded to dtype
  DType dtype;
};

// An operand of a product with weights of type `dtype`.
inline double RoundTo(double x, DType dtype) {
  return dtype == DType::kBF16 ? ToFloat(ToBF16(static_cast<float>(x))) : x;
}

// z = x W^T + bias at one place.  x: [rows, in]; bias: [1, out] or empty.
inline double LinearAt(Tensor x, const LinearMatrix& w, Tensor bias, int64_t row, int64_t column) {
  double z = 0;
  for (int64_t k = 0; k < x.cols; ++k) z += RoundTo(At(x, row, k), w.dtype) * w.w(column, k);
  return bias.data == nullptr ? z : z + At(bias, 0, column);
}

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LINEAR_H_
