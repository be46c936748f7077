#include "kernels/cpu/h3/h3_step.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "kernels/cpu/h3/h3_prefill.h"
#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/reference/published_state.h"

namespace hippodrome::cpu::h3_step_test {
namespace {

using Values = std::vector<float>;

class Stepper {
 public:
  Stepper(const H3Shape& shape, int threads, int64_t slots, DType type = DType::kF32)
      : pool_(threads),
        layer_(shape),
        constants_(pool_, layer_.parameters()),
        state_(constants_, slots, type),
        taken_(static_cast<size_t>(slots)) {}

  // qkv: [slots.size(), 3 d]; each slot's next token.
  Values Step(const Values& qkv, const std::vector<int32_t>& slots, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(slots.size());
    const StridedMatrix x(rows, 3 * d(), gap, qkv);
    const StridedMatrix o(rows, d(), gap, Values(static_cast<size_t>(rows * d()), 5.0f));
    const OwnedTensor indices = NewMatrix(1, rows, DType::kI32);
    CopyIn(slots, indices);
    const OwnedTensor positions = NewMatrix(1, rows, DType::kI32);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t slot = slots[static_cast<size_t>(i)];
      I32Row(positions, 0)[i] = slot < 0 ? -1 : taken_[static_cast<size_t>(slot)]++;
    }
    H3Step(pool_, constants_, x.view(), state_, indices, positions, o.view());
    return o.values();
  }

  // Of the next tokens of `slots`, and the state that they read.
  LaterReads Reads(const std::vector<int32_t>& slots) const {
    const auto rows = static_cast<int64_t>(slots.size());
    const OwnedTensor indices = NewMatrix(1, rows, DType::kI32);
    CopyIn(slots, indices);
    const OwnedTensor positions = NewMatrix(1, rows, DType::kI32);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t slot = slots[static_cast<size_t>(i)];
      I32Row(positions, 0)[i] = slot < 0 ? -1 : taken_[static_cast<size_t>(slot)];
    }
    return ReadsOfH3Step(constants_, state_, indices, positions);
  }
  const H3Slots& state() const { return state_; }
  const H3Layout& layout() const { return constants_.layout(); }

  int64_t d() const { return layer_.parameters().d_model; }
  const H3Parameters& parameters() const { return layer_.parameters(); }
  StateValues Exported(int32_t slot) const {
    return {state_, [&](std::span<const std::span<float>> arrays) {
              return state_.Export(slot, taken_[static_cast<size_t>(slot)], arrays);
            }};
  }
  void GoBack(int32_t slot, int64_t tokens) {
    taken_[static_cast<size_t>(slot)] -= static_cast<int32_t>(tokens);
  }
  // Puts a prompt before the steps of slot 0.
  void Prefill(Tensor qkv, Tensor o) {
    const std::vector<SequencePart> parts = WholeSequences(1, qkv.rows);
    H3Sequence(pool_, constants_, qkv, state_, {parts, {}}, o);
    taken_[0] = static_cast<int32_t>(qkv.rows);
  }

 private:
  ThreadPool pool_;
  RandomH3 layer_;
  H3PrefillWeights constants_;
  H3Slots state_;
  std::vector<int32_t> taken_;  // tokens of each slot
};

Values Token(const Values& qkv, int64_t d, int64_t t) {
  return {qkv.begin() + t * 3 * d, qkv.begin() + (t + 1) * 3 * d};
}

void ExpectSteps(const H3Shape& shape, int64_t steps, int64_t gap = 0) {
  Stepper stepper(shape, 2, 1);
  const int64_t d = shape.d_model;
  const Values qkv = RandomValues(steps * 3 * d, 3);
  const H3Expectation expected = ExpectedH3(stepper.parameters(), qkv);
  for (int64_t t = 0; t < steps; ++t) {
    const Values o = stepper.Step(Token(qkv, d, t), {0}, gap);
    for (int64_t c = 0; c < d; ++c) {
      const double bound =
          2 * kUnitRoundoff * (6 + std::log2(double(steps))) * expected.o_scale[size_t(c)];
      ASSERT_NEAR(o[size_t(c)], expected.o[size_t(t * d + c)], bound + 1e-30)
          << "token " << t << " channel " << c;
    }
  }
}

TEST(H3StepTest, MatchesTheRecurrence) {
  ExpectSteps({.d_model = 16}, 600);
  for (const int64_t d : {1, 5, 33}) ExpectSteps({.d_model = d}, 150);
  for (const int64_t d_state : {2, 6, 20}) ExpectSteps({.d_model = 18, .d_state = d_state}, 50);
  ExpectSteps({.d_model = 20, .n_ssm = 4, .discretization = Discretization::kZoh}, 80, 3);
}

TEST(H3StepTest, MatchesTheRecurrenceOfWideHeads) {
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{16, 2}, {20, 4}, {24, 8}, {33, 3}, {40, 20}}) {
      ExpectSteps({.d_model = d, .head_dim = head_dim, .d_state = 10, .output_order = order}, 30);
    }
  }
}

TEST(H3StepTest, ContinuesASequence) {
  Stepper stepper({.d_model = 21}, 2, 1);
  const int64_t d = stepper.d();
  constexpr int64_t kPrompt = 700;
  constexpr int64_t kSteps = 100;
  const Values qkv = RandomValues((kPrompt + kSteps) * 3 * d, 3);
  const H3Expectation expected = ExpectedH3(stepper.parameters(), qkv);
  const StridedMatrix x(kPrompt, 3 * d, 0, Values(qkv.begin(), qkv.begin() + kPrompt * 3 * d));
  const StridedMatrix o(kPrompt, d, 0);
  stepper.Prefill(x.view(), o.view());
  for (int64_t t = kPrompt; t < kPrompt + kSteps; ++t) {
    const Values y = stepper.Step(Token(qkv, d, t), {0});
    for (int64_t c = 0; c < d; ++c) {
      ASSERT_NEAR(y[size_t(c)], expected.o[size_t(t * d + c)],
                  2 * kUnitRoundoff * (6 + std::log2(double(kPrompt + kSteps))) *
                      expected.o_scale[size_t(c)]);
    }
  }
}

// Of each type of states.
class H3StepTypeTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, H3StepTypeTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(H3StepTypeTest, BatchRowsAreIndependentBitForBit) {
  for (const int64_t head_dim : {1, 4}) {
    const H3Shape shape = {.d_model = 36, .head_dim = head_dim};
    constexpr int32_t kSequences = 7;
    Stepper batch(shape, 3, kSequences, GetParam());
    Stepper single(shape, 1, kSequences, GetParam());
    const int64_t d = shape.d_model;
    for (int64_t t = 0; t < 70; ++t) {
      const Values qkv = RandomValues(kSequences * 3 * d, static_cast<uint32_t>(t));
      const Values o = batch.Step(qkv, {3, 1, 0, 6, 4, 2, 5});
      int64_t row = 0;
      for (const int32_t slot : {3, 1, 0, 6, 4, 2, 5}) {
        const Values alone = single.Step(Token(qkv, d, row), {slot});
        ASSERT_EQ(std::memcmp(alone.data(), o.data() + row * d, alone.size() * sizeof(float)), 0);
        ++row;
      }
    }
  }
}

// Rows of one sequence side by side, up to a block's end, and going back to before some of them.
TEST_P(H3StepTypeTest, TokensInARowAreAsOneByOneBitForBit) {
  for (const int64_t head_dim : {1, 4}) {
    const H3Shape shape = {.d_model = 36, .head_dim = head_dim};
    Stepper rows(shape, 3, 2, GetParam());
    Stepper single(shape, 1, 2, GetParam());
    const int64_t d = shape.d_model;
    uint32_t seed = 0;
    for (int64_t t = 0; t < 90;) {
      const int64_t most = kScanSteps - t % kScanSteps;
      const int64_t fed = 1 + seed % most;
      const int64_t kept = 1 + seed / 3 % fed;
      Values qkv = RandomValues((fed + 1) * 3 * d, ++seed);
      std::vector<int32_t> slots(static_cast<size_t>(fed), 1);
      slots.push_back(0);  // another one beside them
      const Values o = rows.Step(qkv, slots);
      for (int64_t i = 0; i <= fed; ++i) {
        if (i >= kept && i < fed) continue;
        const Values alone = single.Step(Token(qkv, d, i), {i == fed ? 0 : 1});
        ASSERT_EQ(std::memcmp(alone.data(), o.data() + i * d, alone.size() * sizeof(float)), 0)
            << "token " << t + i;
      }
      rows.GoBack(1, fed - kept);
      ASSERT_EQ(rows.Exported(1), single.Exported(1)) << "after token " << t + kept;
      t += kept;
    }
  }
}

// The lines of pending rows [first, last] and of what was looked ahead for the last.
template <typename Stored>
void AddLines(const Stepper& stepper, int32_t slot, int64_t group, int64_t first, int64_t last,
              std::set<const void*>* lines) {
  const H3Layout& layout = stepper.layout();
  const PendingRows pending = stepper.state().Group<Stored>(slot, group).pending;
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    for (int64_t row = first; row <= last; ++row) lines->insert(pending.keys.At(row, c));
    lines->insert(pending.key_sums.At(last, c));
  }
  for (int64_t r = 0; r < layout.row_blocks; ++r) {
    for (int64_t row = first; row <= last; ++row) lines->insert(pending.inputs.At(row, r));
    lines->insert(pending.sums.At(last, r));
  }
}

TEST_P(H3StepTypeTest, ReadsArePendingRowsOfSequencesInsideABlock) {
  for (const int64_t head_dim : {1, 4}) {
    Stepper stepper({.d_model = 36, .head_dim = head_dim}, 1, 3, GetParam());
    const Values token = RandomValues(3 * stepper.d(), 1);
    for (int t = 0; t < 10; ++t) stepper.Step(token, {1});  // to row 2
    for (int t = 0; t < 5; ++t) stepper.Step(token, {2});   // to row 5
    const LaterReads reads = stepper.Reads({1, -1, 0, 2});  // slot 0 begins a block
    ASSERT_EQ(reads.columns, stepper.layout().groups);
    for (int64_t group = 0; group < reads.columns; ++group) {
      std::set<const void*> lines, expected;
      for (const LaterReads::Row& row : reads.rows) lines.insert(row.first + group * row.stride);
      EXPECT_EQ(lines.size(), reads.rows.size());
      const auto add = GetParam() == DType::kF32 ? AddLines<float> : AddLines<BF16>;
      add(stepper, 1, group, 0, 2, &expected);
      add(stepper, 2, group, 0, 5, &expected);
      EXPECT_EQ(lines, expected) << "group " << group;
    }
  }
}

TEST(H3StepTest, InertRowsAreZeroAndTouchNothing) {
  Stepper stepper({.d_model = 18}, 2, 2);
  const Values qkv = RandomValues(3 * 3 * 18, 1);
  stepper.Step(Token(qkv, 18, 0), {1});
  const StateValues before = stepper.Exported(1);
  const Values o = stepper.Step(qkv, {-1, 0, -1});
  for (size_t i = 0; i < o.size(); ++i) EXPECT_EQ(o[i] != 0, i / 18 == 1) << i;
  EXPECT_EQ(stepper.Exported(1), before);
}

}  // namespace
}  // namespace hippodrome::cpu::h3_step_test
