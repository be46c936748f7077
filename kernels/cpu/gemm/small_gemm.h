// Products of small matrices that lie in the caches.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_SMALL_GEMM_H_
#define HIPPODROME_KERNELS_CPU_GEMM_SMALL_GEMM_H_

#include <cstdint>

namespace hippodrome::cpu {

// The columns of a product are a multiple of this.
inline constexpr int64_t kSmallGemmColumns = 16;
// Rows that are multiplied at a time; fewer take as long.
inline constexpr int64_t kSmallGemmRows = 6;

// A matrix to read: element (i, k) at data[i * row + k * step], so that a transposed one is one.
struct SmallGemmFactor {
  const float* data;
  int64_t row;
  int64_t step;
};

// c[i][j] = (accumulate ? c[i][j] : 0) + sum_{k < depth} a(i, k) b[k][j] for i < rows, j < cols,
// with rows of b and c `b_row` and `c_row` apart. Each sum is one chain in the order of k.
struct SmallGemmArguments {
  SmallGemmFactor a;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  int64_t rows, cols, depth;
  bool accumulate;
};

void SmallGemm(const SmallGemmArguments& product);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_SMALL_GEMM_H_
