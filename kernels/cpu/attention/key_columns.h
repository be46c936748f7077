// Keys as the columns of a matrix, for products of queries with many of them.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_KEY_COLUMNS_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_KEY_COLUMNS_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace hippodrome::cpu {

// columns[e * stride + i] = keys[i][e] for i < count and e < width, 0 for i in [count, stride).
// REQUIRES: count <= stride.
void KeysToColumns(const float* const* keys, int64_t count, int64_t width, int64_t stride,
                   float* columns);
void KeysToColumns(const BF16* const* keys, int64_t count, int64_t width, int64_t stride,
                   float* columns);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_KEY_COLUMNS_H_
