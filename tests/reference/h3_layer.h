// One H3 layer between its projections: constants, state, and one step of the recurrence.
#ifndef HIPPODROME_TESTS_REFERENCE_H3_LAYER_H_
#define HIPPODROME_TESTS_REFERENCE_H3_LAYER_H_

#include <functional>
#include <vector>

#include "kernels/training_backend.h"
#include "tests/reference/h3_ssm.h"
#include "tests/reference/layer_state.h"

namespace hippodrome::reference {

// The state of one sequence.
struct H3SlotState {
  std::vector<std::vector<double>> inputs;     // [d][N] raw k, oldest first
  std::vector<std::vector<double>> shift;      // [d][N]
  std::vector<std::vector<Complex>> diagonal;  // [head, d1, d2][M]
};

// Prefill, steps and training all take it step by step.
class H3Layer final : public H3Weights, public H3ConvolutionWeights {
 public:
  explicit H3Layer(const H3Parameters& p);

  int64_t bytes() const override { return 0; }
  int64_t d() const { return d_model_; }
  int64_t head_dim() const { return head_dim_; }
  int64_t heads() const { return d_model_ / head_dim_; }
  int64_t d_state() const { return d_state_; }
  const H3ShiftSsm& shift(int64_t channel) const { return shift_[channel]; }
  const H3DiagonalSsm& diagonal(int64_t head) const { return diagonal_[head]; }
  // The column of o of output d2 of head h.
  int64_t OutputChannel(int64_t h, int64_t d2) const {
    return output_order_ == H3OutputOrder::kHeadD2 ? h * head_dim_ + d2 : d2 * heads() + h;
  }
  H3SlotState NewState() const;

  // qkv: [1, 3 d], k rounded to `type`; o: [1, d].
  void Step(Tensor qkv, DType type, H3SlotState& state, Tensor o) const;

 private:
  int64_t d_model_;
  int64_t head_dim_;
  int64_t d_state_;
  H3OutputOrder output_order_;
  std::vector<H3ShiftSsm> shift_;        // [d]
  std::vector<H3DiagonalSsm> diagonal_;  // [H]
};

class H3LayerState final : public LayerState {
 public:
  // `type`: see Backend::H3Sequence(). `layer` must outlive it.
  H3LayerState(const H3Layer& layer, int64_t slots, DType type)
      : layer(layer), type(type), zero(layer.NewState()), slot(slots, zero) {}

  int64_t slots() const override { return static_cast<int64_t>(slot.size()); }
  int64_t bytes_per_slot() const override;
  std::vector<StateArray> arrays() const override {
    return H3StateArrays(layer.heads(), layer.head_dim(), layer.d_state());
  }
  // The token at `position` of a slot's sequence; whether a transform goes on behind it.
  void Step(int64_t index, int64_t position, bool transforms, Tensor qkv, Tensor o);
  void Reset(int64_t index) override { slot[index] = zero; }
  void Copy(int64_t from, int64_t to) override { slot[to] = slot[from]; }
  void Export(int64_t index, std::span<const std::span<float>> arrays) const override;
  void Import(int64_t index, std::span<const std::span<const float>> arrays) override;

  const H3Layer& layer;
  const DType type;
  H3SlotState zero;
  std::vector<H3SlotState> slot;

 private:
  // x / dB to the nearest of the type.
  void RoundModes(H3SlotState& state) const;
  // In the order of the modes of arrays(); row: (head, d1, d2).
  void ForEachMode(const std::function<void(int64_t row, int64_t n, Complex db)>& body) const;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_H3_LAYER_H_
