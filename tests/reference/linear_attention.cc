#include "tests/reference/linear_attention.h"

#include <cmath>

#include "tests/reference/matrix.h"

namespace hippodrome::reference {

double LinearAttentionFeature(double x) { return x > 0 ? x + 1 : std::exp(x); }

LinearAttentionState::LinearAttentionState(const LinearAttentionShape& shape, int64_t slots)
    : shape_(shape), slots_(slots) {
  for (int64_t slot = 0; slot < slots; ++slot) Reset(slot);
}

int64_t LinearAttentionState::bytes_per_slot() const {
  return shape_.heads * shape_.head_dim * (shape_.head_dim + 1) *
         static_cast<int64_t>(sizeof(double));
}

void LinearAttentionState::Reset(int64_t index) {
  slots_[index].kv.assign(shape_.heads * shape_.head_dim * shape_.head_dim, 0);
  slots_[index].normalizer.assign(shape_.heads * shape_.head_dim, 0);
}

void LinearAttentionState::Export(int64_t index, std::span<const std::span<float>> arrays) const {
  const Slot& slot = slots_[index];
  for (size_t i = 0; i < slot.kv.size(); ++i) arrays[0][i] = static_cast<float>(slot.kv[i]);
  for (size_t i = 0; i < slot.normalizer.size(); ++i) {
    arrays[1][i] = static_cast<float>(slot.normalizer[i]);
  }
}

void LinearAttentionState::Import(int64_t index, std::span<const std::span<const float>> arrays) {
  slots_[index].kv.assign(arrays[0].begin(), arrays[0].end());
  slots_[index].normalizer.assign(arrays[1].begin(), arrays[1].end());
}

void LinearAttentionState::Step(int64_t index, Tensor qkv, Tensor o) {
  const int64_t n = shape_.head_dim;
  const int64_t d = shape_.heads * n;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    double* s = &slots_[index].kv[head * n * n];
    double* z = &slots_[index].normalizer[head * n];
    const int64_t first = head * n;
    std::vector<double> numerator(n);
    double denominator = kLinearAttentionEpsilon;
    for (int64_t i = 0; i < n; ++i) {
      const double q = LinearAttentionFeature(At(qkv, 0, first + i));
      const double k = LinearAttentionFeature(At(qkv, 0, d + first + i));
      z[i] += k;
      denominator += q * z[i];
      for (int64_t j = 0; j < n; ++j) {
        s[i * n + j] += k * At(qkv, 0, 2 * d + first + j);
        numerator[j] += q * s[i * n + j];
      }
    }
    for (int64_t j = 0; j < n; ++j) At(o, 0, first + j) = numerator[j] / denominator;
  }
}

}  // namespace hippodrome::reference
