// Both tile forms of a gradient: its rows, for dx = dz W, and its columns, for dW = dz^T x.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_GRADIENT_TILES_H_
#define HIPPODROME_KERNELS_CPU_GEMM_GRADIENT_TILES_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace hippodrome::cpu {

// At most 32 rows by 32 columns of f32.
struct GradientBlock {
  const float* values;  // rows of `stride`
  int64_t stride;
  int64_t rows;
  int64_t cols;
};

// Rounds a block to bf16, to nearest even, with zeros beyond it, into two tiles of its rows and two
// of its columns (microkernel_amx.h), and adds the sums of its columns to `sums` [cols]. REQUIRES:
// HaveAmx().
struct GradientTiles {
  BF16* rows[2];
  BF16* columns[2];
  float* sums;
};
void StoreGradient(const GradientBlock& block, const GradientTiles& tiles);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_GRADIENT_TILES_H_
