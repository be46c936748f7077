// Rotary position embedding in the GPT-NeoX layout.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_

#include <cstdint>
#include <functional>

#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// The rotation of one position: cos and sin of position * inv_freq[j] for j < half, the angle in
// double. `turns` holds half cosines, then half sines.
void RotaryTurns(int64_t position, const float* inv_freq, int64_t half, float* turns);

// The rotations of position(row) for rows in [0, rows), [rows, rotary_dim]; unspecified where that
// is negative. They belong to the calling thread until it asks again.
const float* AllTurns(ThreadPool& pool, const AttentionShape& shape, const Tensor& inv_freq,
                      int64_t rows, const std::function<int64_t(int64_t)>& position);

// out = x with its first 2 half elements rotated, both of head_dim elements; may be the same:
// out[j] = x[j] cos_j - x[half + j] sin_j, out[half + j] = x[j] sin_j + x[half + j] cos_j.
void Rotate(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out);

// The transposed rotation, which is the gradient's and the inverse.
void RotateBack(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_
