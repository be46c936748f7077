// A random H3 layer on a device, and what is run on it, for tests.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_H3_H3_LAYER_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_H3_H3_LAYER_H_

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/h3/h3_exchange.h"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_step.h"
#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/reference/published_state.h"

namespace hippodrome::cuda {

using Values = std::vector<float>;
using Indices = std::vector<int32_t>;

// A matrix whose rows are `gap` elements apart, and which starts `gap` elements after a border.
class H3Matrix {
 public:
  H3Matrix(Device& device, int64_t rows, const Values& values, DType dtype, int64_t gap = 0)
      : device_(device),
        memory_(NewMatrix(device, rows, static_cast<int64_t>(values.size()) / rows + gap, dtype)),
        view_(memory_.view.Cols(gap, static_cast<int64_t>(values.size()) / rows)) {
    CopyIn(device, values, view_);
  }

  Tensor view() const { return view_; }
  Values values() const {
    Values out(static_cast<size_t>(view_.rows * view_.cols));
    CopyOut(device_, view_, std::span<float>(out));
    return out;
  }

 private:
  Device& device_;
  OwnedTensor memory_;
  Tensor view_;
};

inline OwnedTensor DeviceIndices(Device& device, const Indices& indices) {
  OwnedTensor memory = NewMatrix(device, 1, static_cast<int64_t>(indices.size()), DType::kI32);
  CopyIn(device, indices, memory);
  return memory;
}

// A layer with activations of one type. Positions are counted for every slot.
class H3Layer {
 public:
  explicit H3Layer(const H3Shape& shape, DType activations = DType::kF32, int64_t slots = 2)
      : random_(shape),
        constants_(device_, random_.parameters(), activations),
        state_(device_, constants_, slots),
        positions_(static_cast<size_t>(slots)) {}

  int64_t d() const { return random_.parameters().d_model; }
  Device& device() { return device_; }
  const H3PrefillWeights& constants() const { return constants_; }
  const H3Parameters& parameters() const { return random_.parameters(); }
  H3Slots& state() { return state_; }
  int64_t position(int32_t slot) const { return positions_[static_cast<size_t>(slot)]; }
  void set_position(int32_t slot, int64_t position) {
    positions_[static_cast<size_t>(slot)] = position;
  }
  StateValues Exchanged(int32_t slot) {
    return {state_, [&](std::span<const std::span<float>> arrays) {
              ExportSlot(device_, state_, slot, position(slot), arrays);
              return 0;
            }};
  }
  PublishedState Export(int32_t slot) { return Published(parameters(), Exchanged(slot)); }
  void Import(int32_t slot, const StateValues& values, int64_t position) {
    ImportSlot(device_, state_, slot, position, values.Spans());
    set_position(slot, position);
  }

  // Random q, k and v of `tokens` tokens, exact in the type of the activations.
  Values RandomTokens(int64_t tokens, uint32_t seed) const {
    Values qkv = RandomValues(tokens * 3 * d(), seed);
    if (constants_.activations() == DType::kBF16) {
      for (float& x : qkv) x = ToFloat(ToBF16(x));
    }
    return qkv;
  }

  // One of the kernels of h3_prefill.h on equally many tokens of slots.size() sequences.
  template <typename Kernel>
  Values Sequence(const Kernel& kernel, const Values& qkv, const Indices& slots, int64_t gap = 0) {
    const int64_t rows = static_cast<int64_t>(qkv.size()) / (3 * d());
    const auto tokens = static_cast<int32_t>(rows / static_cast<int64_t>(slots.size()));
    return Parts(kernel, qkv, slots, Indices(slots.size(), tokens), {}, gap);
  }

  // The same on tokens[i] tokens of the sequence in slots[i], with captures.
  template <typename Kernel>
  Values Parts(const Kernel& kernel, const Values& qkv, const Indices& slots, const Indices& tokens,
               const std::vector<StateCapture>& captures = {}, int64_t gap = 0) {
    const int64_t rows = static_cast<int64_t>(qkv.size()) / (3 * d());
    const DType dtype = constants_.activations();
    const H3Matrix x(device_, rows, qkv, dtype, gap);
    const H3Matrix o(device_, rows, Values(static_cast<size_t>(rows * d()), 5.0f), dtype, gap);
    std::vector<SequencePart> parts;
    int32_t row = 0;
    for (size_t i = 0; i < slots.size(); row += tokens[i++]) {
      const int64_t start = slots[i] < 0 ? 0 : position(slots[i]);
      parts.push_back({.slot = slots[i],
                       .first_row = row,
                       .tokens = tokens[i],
                       .start = static_cast<int32_t>(start)});
    }
    kernel(device_, H3SequenceCall{.constants = constants_,
                                   .qkv = x.view(),
                                   .state = state_,
                                   .parts = parts,
                                   .captures = captures,
                                   .o = o.view()});
    for (size_t i = 0; i < slots.size(); ++i) Advance(slots[i], tokens[i]);
    for (const StateCapture& capture : captures) {
      const SequencePart& part = parts[static_cast<size_t>(capture.part)];
      set_position(capture.to, part.start + capture.tokens);
    }
    return o.values();
  }

  // H3Step() or another of its contract, one token for each of slots.size() sequences.
  template <typename Kernel>
  Values Step(const Kernel& kernel, const Values& qkv, const Indices& slots, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(slots.size());
    const DType dtype = constants_.activations();
    const H3Matrix x(device_, rows, qkv, dtype, gap);
    const H3Matrix o(device_, rows, Values(static_cast<size_t>(rows * d()), 5.0f), dtype, gap);
    Indices positions;
    for (const int32_t slot : slots) {
      positions.push_back(slot < 0 ? 0 : static_cast<int32_t>(position(slot)));
    }
    const OwnedTensor slot_indices = DeviceIndices(device_, slots);
    const OwnedTensor position_indices = DeviceIndices(device_, positions);
    kernel(device_, H3StepCall{.constants = constants_,
                               .qkv = x.view(),
                               .state = state_,
                               .slots = slot_indices,
                               .positions = position_indices,
                               .o = o.view()});
    for (const int32_t slot : slots) Advance(slot, 1);
    return o.values();
  }

  // |o - expected| <= constant * roundoff * scale, and the rounding to bf16.  o: tokens from
  // `first` on, out of `tokens`.
  void ExpectOutput(const H3Expectation& expected, int64_t first, int64_t tokens, const Values& o,
                    double constant = 2) const {
    const double roundoff = kUnitRoundoff * (6 + std::log2(static_cast<double>(tokens)));
    const double rounding = constants_.activations() == DType::kBF16 ? 0x1p-8 : 0;
    for (size_t i = 0; i < o.size(); ++i) {
      const double y = expected.o[static_cast<size_t>(first * d()) + i];
      const double scale = expected.o_scale[i % static_cast<size_t>(d())];
      ASSERT_NEAR(o[i], y, constant * roundoff * scale + rounding * std::abs(y) * 1.01 + 1e-30)
          << "token " << first + static_cast<int64_t>(i) / d() << " channel "
          << static_cast<int64_t>(i) % d();
    }
  }

  void ExpectState(const H3Expectation& expected, int32_t slot, double constant = 1) {
    const PublishedState state = Export(slot);
    const double roundoff =
        kUnitRoundoff * (6 + std::log2(static_cast<double>(std::max<int64_t>(1, position(slot)))));
    ASSERT_EQ(state.shift.size(), expected.shift.size());
    for (size_t i = 0; i < state.shift.size(); ++i) {
      ASSERT_NEAR(state.shift[i], expected.shift[i], 1e-5) << i;
    }
    ASSERT_EQ(state.diagonal.size(), expected.diagonal.size());
    for (size_t i = 0; i < state.diagonal.size(); ++i) {
      const double scale = roundoff * expected.state_scale[i / 2] + 1e-30;
      ASSERT_NEAR(state.diagonal[i], expected.diagonal[i], constant * scale) << i;
    }
  }

 private:
  void Advance(int32_t slot, int64_t tokens) {
    if (slot >= 0) positions_[static_cast<size_t>(slot)] += tokens;
  }

  Device device_;
  RandomH3 random_;
  H3PrefillWeights constants_;
  H3Slots state_;
  std::vector<int64_t> positions_;
};

// Rows [begin, end) of a matrix of `cols` columns.
inline Values RowsOf(const Values& values, int64_t cols, int64_t begin, int64_t end) {
  return {values.begin() + begin * cols, values.begin() + end * cols};
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_H3_H3_LAYER_H_
