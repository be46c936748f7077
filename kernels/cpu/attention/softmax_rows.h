// The softmax of whole rows of attention scores, and its gradient.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_ROWS_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_ROWS_H_

#include <cstdint>

namespace hippodrome::cpu {

// Scores lie in blocks [kScoreBlock queries][kScoreBlock keys], side by side along the keys.
inline constexpr int64_t kScoreBlock = 64;
// What lies behind the last visible score is set up to a multiple of this.
inline constexpr int64_t kScoreColumns = 16;

// A row of the first block with its first `visible` >= 1 scores, over as many blocks as these need:
// replaces scores by exp(score - max), and by zeros up to the multiple. Returns the sum.
float ExponentialRow(float* scores, int64_t visible);

// `p`: a row that ExponentialRow() left, of sum `total`; dp: the gradient of the loss by P = p /
// total. Replaces p by P and dp by dS = P (dp - sum_s P_s dp_s).
void SoftmaxBackwardRow(float total, int64_t visible, float* p, float* dp);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_ROWS_H_
