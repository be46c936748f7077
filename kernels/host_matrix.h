// Elements of weights in host memory, as backends read them to pack them.
#ifndef HIPPODROME_KERNELS_HOST_MATRIX_H_
#define HIPPODROME_KERNELS_HOST_MATRIX_H_

#include <cstdint>

#include "kernels/backend.h"

namespace hippodrome {

// An element of kF16; those of kF32 and kBF16 are float and BF16.
struct Half {
  uint16_t bits;
};
inline float ToFloat(Half x) { return HalfToFloat(x.bits); }
inline float ToFloat(float x) { return x; }

// Group `group` of a row of `matrix` as weights of type `weights` have it: QuantizedGroup(weights)
// integers, zero past the row's end, and their scale. They are those of the matrix where it is of
// that type, else QuantizeGroup()'s. REQUIRES: IsQuantized(weights); of a matrix of integers, the
// same type.
BF16 ReadGroup(const HostMatrix& matrix, int64_t row, int64_t group, DType weights,
               int8_t* integers);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_HOST_MATRIX_H_
