// The recurrence that linear attention and its gradients are made of: a matrix that every token
// adds to, and that every token multiplies a vector by.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_OUTER_SCAN_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_OUTER_SCAN_H_

#include <cstdint>

namespace hippodrome::cpu {

// Vectors have a multiple of so many floats, and start at a multiple of as many.
inline constexpr int64_t kOuterColumns = 16;

// For each token t:  M = M + x_t y_t^T;  out_t = w_t^T M.
struct OuterScan {
  int64_t rows = 0;   // of M, the length of x_t and w_t
  int64_t width = 0;  // of M, the length of y_t and out_t; a multiple of kOuterColumns
  int64_t tokens = 0;
  int64_t step = 0;  // floats to the next token's vectors; negative goes back in time
  const float* x = nullptr;
  const float* y = nullptr;
  const float* w = nullptr;
  float* matrix = nullptr;  // [rows, width]
  float* out = nullptr;
};

// A token goes through the same operations whether it comes alone or among others: where a sequence
// is cut changes no bit.
void RunOuterScan(const OuterScan& scan);

// y_i = elu(x_i) + 1 for i < n, then zeros up to a multiple of kOuterColumns.
void LinearAttentionFeatures(const float* x, int64_t n, float* y);

// z = z + k; gives q . z. Of `width` floats, a multiple of kOuterColumns.
float AddAndDot(const float* k, const float* q, int64_t width, float* z);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_OUTER_SCAN_H_
