// Linear attention over parts of sequences and over single tokens, its states, and its gradients.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_LINEAR_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_LINEAR_ATTENTION_H_

#include <vector>

#include "kernels/cpu/base/recurrent_slots.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// S [head_dim, width] and z [width] of each head, rows filled up with zeros.
class LinearAttentionSlots final : public RecurrentSlots {
 public:
  LinearAttentionSlots(const LinearAttentionShape& shape, int64_t slots);

  std::vector<StateArray> arrays() const override { return LinearAttentionStateArrays(shape_); }
  int64_t Export(int64_t slot, int64_t position,
                 std::span<const std::span<float>> arrays) const override;
  void Import(int64_t slot, int64_t position,
              std::span<const std::span<const float>> arrays) override;

  // S, and behind it z.
  float* Head(int64_t slot, int64_t head) const;
  // One head alone.
  void CopyHead(int64_t from, int64_t to, int64_t head);

 private:
  LinearAttentionShape shape_;
};

// The contracts of the operations of these names in backend.h and training_backend.h; activations
// are f32.
void LinearAttentionSequence(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                             LinearAttentionSlots& state, const SequenceParts& parts, Tensor o);
void LinearAttentionStep(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                         LinearAttentionSlots& state, Tensor slots, Tensor o);
void CausalLinearAttention(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                           int64_t sequences, Tensor o);
void CausalLinearAttentionBackward(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                                   int64_t sequences, Tensor d_o, Gradient dqkv);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_LINEAR_ATTENTION_H_
