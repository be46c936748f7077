// Where the reference puts gradients.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_GRADIENT_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_GRADIENT_H_

#include "kernels/training_backend.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

// The gradient becomes `value`, or grows by it, where it is wanted. Rows of `value` go to rows from
// `first_row`.
inline void Put(const Matrix& value, const Gradient& gradient, int64_t first_row = 0) {
  if (gradient.tensor.data == nullptr) return;
  for (int64_t r = 0; r < value.rows; ++r) {
    for (int64_t c = 0; c < value.cols; ++c) {
      double& to = At(gradient.tensor, first_row + r, c);
      to = value(r, c) + (gradient.add ? to : 0);
    }
  }
}

// The gradient of a parameter grows by `value` where it is wanted.
inline void AddTo(Tensor gradient, int64_t r, int64_t c, double value) {
  if (gradient.data != nullptr) At(gradient, r, c) += value;
}

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_GRADIENT_H_
