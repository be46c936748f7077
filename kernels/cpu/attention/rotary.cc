#include "kernels/cpu/attention/rotary.h"

#include <cmath>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {

void RotaryTurns(int64_t position, const float* inv_freq, int64_t half, float* turns) {
  for (int64_t j = 0; j < half; ++j) {
    const double angle = static_cast<double>(position) * inv_freq[j];
    turns[j] = static_cast<float>(std::cos(angle));
    turns[half + j] = static_cast<float>(std::sin(angle));
  }
}

const float* AllTurns(ThreadPool& pool, const AttentionShape& shape, const Tensor& inv_freq,
                      int64_t rows, const std::function<int64_t(int64_t)>& position) {
  const int64_t width = shape.rotary_dim;
  float* turns = ThreadScratch<float>(ScratchUse::kAttentionRotation, rows * width);
  if (width == 0) return turns;
  ParallelRows(pool, rows, 32 * width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = position(row);
      if (at >= 0) RotaryTurns(at, F32Row(inv_freq, 0), width / 2, turns + row * width);
    }
  });
  return turns;
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
