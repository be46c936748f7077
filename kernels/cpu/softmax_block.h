// The running softmax of attention: one row of scores against one block of keys.
#ifndef HIPPODROME_KERNELS_CPU_SOFTMAX_BLOCK_H_
#define HIPPODROME_KERNELS_CPU_SOFTMAX_BLOCK_H_

#include <cstdint>
#include <limits>

namespace hippodrome::cpu {

// Keys of a block. Blocks start at multiples of it, so that sums form alike however a sequence is
// cut.
inline constexpr int64_t kKeyBlock = 64;

// What is known of a row after some blocks: sum_s exp(score_s - max).
struct RunningSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float total = 0;
};

// Turns the first `count` of the kKeyBlock scores into exp(score - max), with the maximum over this
// and earlier blocks, and the others into zeros. Returns the factor that brings what was summed
// with the earlier maximum to the new one.
float ExtendSoftmax(float* scores, int64_t count, RunningSoftmax& softmax);

// scores[s] = q . keys[s] for s < count.
void ScoreKeys(const float* q, const float* const* keys, int64_t count, int64_t head_dim,
               float* scores);

// o = o * factor + sum_{s < count} p[s] values[s], where values[s] = keys[s] + value_offset.
void AddValues(const float* p, const float* const* keys, int64_t value_offset, int64_t count,
               int64_t head_dim, float factor, float* o);

// x *= factor for n elements.
void Scale(float factor, int64_t n, float* x);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_SOFTMAX_BLOCK_H_
