// Rotary position embedding in the GPT-NeoX layout.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_

#include <cstdint>

namespace hippodrome::cpu {

// The rotation of one position: cos and sin of position * inv_freq[j] for j < half, the angle in
// double. `turns` holds half cosines, then half sines.
void RotaryTurns(int64_t position, const float* inv_freq, int64_t half, float* turns);

// out = x with its first 2 half elements rotated, both of head_dim elements; may be the same:
// out[j] = x[j] cos_j - x[half + j] sin_j, out[half + j] = x[j] sin_j + x[half + j] cos_j.
void Rotate(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out);

// The transposed rotation, which is the gradient's and the inverse.
void RotateBack(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_ROTARY_H_
