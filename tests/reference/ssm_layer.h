// The states of the SSM of a decoder's layer.
#ifndef HIPPODROME_TESTS_REFERENCE_SSM_LAYER_H_
#define HIPPODROME_TESTS_REFERENCE_SSM_LAYER_H_

#include <vector>

#include "tests/reference/layer_state.h"
#include "tests/reference/long_conv_ssm.h"

namespace hippodrome::reference {

class SsmLayerState final : public LayerState {
 public:
  // `ssm` must outlive it.
  SsmLayerState(const LongConvSsm& ssm, int64_t slots);

  int64_t slots() const override { return static_cast<int64_t>(slots_.size()); }
  int64_t bytes_per_slot() const override;
  std::vector<StateArray> arrays() const override;
  void Reset(int64_t index) override;
  void Copy(int64_t from, int64_t to) override { slots_[to] = slots_[from]; }
  void Export(int64_t index, std::span<const std::span<float>> arrays) const override;
  void Import(int64_t index, std::span<const std::span<const float>> arrays) override;

  // The next token of a slot.  u, y: [1, d].
  void Step(int64_t index, Tensor u, Tensor y);

 private:
  using Slot = std::vector<LongConvSsm::State>;  // of each channel

  const LongConvSsm& ssm_;
  std::vector<Slot> slots_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_SSM_LAYER_H_
