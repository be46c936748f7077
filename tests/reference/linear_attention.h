// Linear attention, one token at a time, and its states.
#ifndef HIPPODROME_TESTS_REFERENCE_LINEAR_ATTENTION_H_
#define HIPPODROME_TESTS_REFERENCE_LINEAR_ATTENTION_H_

#include <vector>

#include "tests/reference/layer_state.h"

namespace hippodrome::reference {

// elu(x) + 1.
double LinearAttentionFeature(double x);

class LinearAttentionState final : public LayerState {
 public:
  LinearAttentionState(const LinearAttentionShape& shape, int64_t slots);

  int64_t slots() const override { return static_cast<int64_t>(slots_.size()); }
  int64_t bytes_per_slot() const override;
  std::vector<StateArray> arrays() const override { return LinearAttentionStateArrays(shape_); }
  void Reset(int64_t index) override;
  void Copy(int64_t from, int64_t to) override { slots_[to] = slots_[from]; }
  void Export(int64_t index, std::span<const std::span<float>> arrays) const override;
  void Import(int64_t index, std::span<const std::span<const float>> arrays) override;

  // The next token of a slot.  qkv: [1, 3 d]; o: [1, d].
  void Step(int64_t index, Tensor qkv, Tensor o);

 private:
  struct Slot {
    std::vector<double> kv;          // S, [heads, head_dim, head_dim]
    std::vector<double> normalizer;  // z, [heads, head_dim]
  };

  LinearAttentionShape shape_;
  std::vector<Slot> slots_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LINEAR_ATTENTION_H_
