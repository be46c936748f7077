// The softmax of attention: running over blocks of keys, where a query sees them one block at a
// time, or of whole rows of scores, with its gradient.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_H_

#include <cstdint>
#include <limits>

#include "kernels/dtype.h"

namespace hippodrome::cpu {

// Keys of a block. Blocks start at multiples of it, so that sums form alike however a sequence is
// cut.
inline constexpr int64_t kKeyBlock = 64;

// What is known of a row after some blocks: sum_s exp(score_s - max).
struct RunningSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float total = 0;
};

// For each of `rows` rows of kKeyBlock scores, of which row r has count + r visible ones (clamped
// to what exists): turns those into exp(score - max), with the maximum over this and earlier
// blocks, and the others into zeros. factors[r] brings what row r summed with its earlier maximum
// to the new one.
void ExtendSoftmax(float* scores, int64_t rows, int64_t count, RunningSoftmax* softmax,
                   float* factors);

// An element of a key or of a value.
inline float Widen(float x) { return x; }
inline float Widen(BF16 x) { return ToFloat(x); }

// The rows of one head that a block covers: count <= kKeyBlock keys of head_dim elements, each with
// its value `value_offset` elements later. T: float or BF16.
template <typename T>
struct KeyRows {
  const T* keys[kKeyBlock];
  int64_t count;
  int64_t head_dim;
  int64_t value_offset;
};

// scores[s] = q . key_s for s < count, in f32. Meanwhile the values are fetched.
void ScoreKeys(const float* q, const KeyRows<float>& rows, float* scores);
void ScoreKeys(const float* q, const KeyRows<BF16>& rows, float* scores);

// o = o * factor + sum_{s < count} p[s] value_s, in f32. Meanwhile the keys of `next` are fetched.
void AddValues(const float* p, const KeyRows<float>& rows, float factor, const KeyRows<float>& next,
               float* o);
void AddValues(const float* p, const KeyRows<BF16>& rows, float factor, const KeyRows<BF16>& next,
               float* o);

// x *= factor for n elements.
void Scale(float factor, int64_t n, float* x);

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

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_SOFTMAX_H_
