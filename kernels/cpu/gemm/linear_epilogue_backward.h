// What leads from the gradient of a product's output to that of z = x W^T + bias.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_LINEAR_EPILOGUE_BACKWARD_H_
#define HIPPODROME_KERNELS_CPU_GEMM_LINEAR_EPILOGUE_BACKWARD_H_

#include <cstdint>

#include "kernels/backend.h"

namespace hippodrome::cpu {

// One row of `cols` values.
struct EpilogueBackwardArguments {
  int64_t cols;
  Epilogue::Activation activation;
  const float* bias;  // added to z first, or null
  const float* gate;  // or null
  const float* dy;
  float* z;      // replaced by dz
  float* dgate;  // or null; may be dy
  bool add_to_dgate;
};

// With the bias in z: dz = dy * gate * activation'(z);  dgate = dy * activation(z), or added to
// what is there. Errors by a few ulp of |activation'| + 1, or as ApplyEpilogue(). activation'(0) =
// 0 for ReLU.
void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_EPILOGUE_BACKWARD_H_
