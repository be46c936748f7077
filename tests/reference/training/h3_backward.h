// The backward of one H3 layer between its projections, as sums over all pairs of tokens.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_H3_BACKWARD_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_H3_BACKWARD_H_

#include "kernels/training_backend.h"
#include "tests/reference/h3_layer.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

struct H3KernelGradients final : public H3Gradients {
  explicit H3KernelGradients(const H3Layer& layer)
      : taps(layer.d(), layer.d_state()), shift_d(layer.d()), k(layer.heads()), d(layer.heads()) {}

  Matrix taps;                         // [d, N]
  std::vector<double> shift_d;         // [d]
  std::vector<std::vector<double>> k;  // [H], as long as the longest sequence so far
  std::vector<double> d;               // [H]
};

// One sequence.  qkv: [T, 3 d]; d_o: [T, d]. Adds to `sums` and returns dqkv.
Matrix H3Backward(const H3Layer& layer, Tensor qkv, Tensor d_o, H3KernelGradients& sums);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_H3_BACKWARD_H_
