#include "kernels/cpu/attention/rotary.h"

#include <cmath>

namespace hippodrome::cpu {

void RotaryTurns(int64_t position, const float* inv_freq, int64_t half, float* turns) {
  for (int64_t j = 0; j < half; ++j) {
    const double angle = static_cast<double>(position) * inv_freq[j];
    turns[j] = static_cast<float>(std::cos(angle));
    turns[half + j] = static_cast<float>(std::sin(angle));
  }
}

void Rotate(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out) {
  for (int64_t j = 0; j < half; ++j) {
    const float x1 = x[j];
    const float x2 = x[half + j];
    out[j] = x1 * turns[j] - x2 * turns[half + j];
    out[half + j] = x1 * turns[half + j] + x2 * turns[j];
  }
  for (int64_t j = 2 * half; j < head_dim; ++j) out[j] = x[j];
}

void RotateBack(const float* x, const float* turns, int64_t half, int64_t head_dim, float* out) {
  for (int64_t j = 0; j < half; ++j) {
    const float x1 = x[j];
    const float x2 = x[half + j];
    out[j] = x1 * turns[j] + x2 * turns[half + j];
    out[half + j] = x2 * turns[j] - x1 * turns[half + j];
  }
  for (int64_t j = 2 * half; j < head_dim; ++j) out[j] = x[j];
}

}  // namespace hippodrome::cpu
