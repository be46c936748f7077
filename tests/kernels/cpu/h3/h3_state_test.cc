#include "kernels/cpu/h3/h3_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "kernels/make_backend.h"
#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/reference/published_state.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::cpu::h3_state_test {
namespace {

using Values = std::vector<float>;

float Rounded(float x) { return ToFloat(ToBF16(x)); }

Values Rounded(Values values) {
  for (float& x : values) x = Rounded(x);
  return values;
}

// A layer on a backend with three slots.
class Layer {
 public:
  Layer(Backend& backend, const H3Shape& shape, DType type = DType::kF32)
      : b_(backend),
        random_(shape),
        weights_(b_.PrepareH3(random_.parameters(), DType::kF32)),
        state_(b_.NewH3State(*weights_, 3, type)) {}

  int64_t d() const { return random_.parameters().d_model; }
  RecurrentState& state() { return *state_; }

  Values Prefill(const Values& qkv, int32_t slot, int64_t start) {
    const auto tokens = static_cast<int32_t>(std::ssize(qkv) / (3 * d()));
    const SequencePart part = {
        .slot = slot, .tokens = tokens, .start = static_cast<int32_t>(start)};
    return Run(qkv, [&](Tensor x, Tensor o) {
      b_.H3Sequence(*weights_, x, *state_, {{&part, 1}, {}}, o);
    });
  }

  Values Step(const Values& qkv, int32_t slot, int64_t position) {
    const OwnedTensor slots = b_.NewIndices(1, 1), positions = b_.NewIndices(1, 1);
    b_.UploadIndices(std::vector{slot}, slots);
    b_.UploadIndices(std::vector{static_cast<int32_t>(position)}, positions);
    return Run(qkv,
               [&](Tensor x, Tensor o) { b_.H3Step(*weights_, x, *state_, slots, positions, o); });
  }

  // Tokens in a prefill and in steps.
  Values GoOn(int32_t slot, int64_t position) {
    Values all = Prefill(RandomValues(19 * 3 * d(), 5), slot, position);
    for (int64_t t = 0; t < 3; ++t) {
      const Values o =
          Step(RandomValues(3 * d(), static_cast<uint32_t>(t)), slot, position + 19 + t);
      all.insert(all.end(), o.begin(), o.end());
    }
    return all;
  }

  StateValues Export(int32_t slot, int64_t position) {
    return Exported(b_, *state_, slot, position);
  }
  void Import(int32_t slot, int64_t position, const StateValues& values) {
    b_.ImportSlot(*state_, slot, position, values.Spans());
  }
  // Nothing of what is there may be seen again.
  void FillWithNaN(int32_t slot) {
    auto& slots = static_cast<H3Slots&>(*state_);
    std::memset(slots.Slot(slot), 0xff, static_cast<size_t>(slots.bytes_per_slot()));
  }

 private:
  template <typename Operation>
  Values Run(const Values& qkv, const Operation& operation) {
    const int64_t rows = std::ssize(qkv) / (3 * d());
    const OwnedTensor x = b_.NewTensor(rows, 3 * d()), o = b_.NewTensor(rows, d());
    b_.Upload(qkv, x);
    operation(x, o);
    Values values(static_cast<size_t>(rows * d()));
    b_.Download(o, values);
    return values;
  }

  Backend& b_;
  RandomH3 random_;
  std::unique_ptr<H3Weights> weights_;
  std::unique_ptr<RecurrentState> state_;
};

// Of each type of states.
class H3StateTypeTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, H3StateTypeTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(H3StateTypeTest, WhatIsImportedGoesOnWithTheSameBits) {
  const auto backend = MakeCpuBackend({.threads = 2});
  for (const H3Shape& shape :
       {H3Shape{.d_model = 37, .d_state = 10}, H3Shape{.d_model = 20, .head_dim = 2, .d_state = 6},
        H3Shape{.d_model = 33, .head_dim = 3, .d_state = 8},
        H3Shape{.d_model = 40, .head_dim = 20, .d_state = 4}}) {
    SCOPED_TRACE(shape.head_dim);
    Layer layer(*backend, shape, GetParam());
    for (int64_t position = 1; position <= 2 * shape.d_state + 1; ++position) {
      SCOPED_TRACE(position);
      for (int32_t slot : {0, 1}) layer.FillWithNaN(slot);
      backend->ResetSlot(layer.state(), 0);
      layer.Prefill(RandomValues(position * 3 * shape.d_model, 3), 0, 0);
      const StateValues kept = layer.Export(0, position);
      layer.Import(1, position, kept);
      EXPECT_EQ(layer.Export(1, position), kept);
      EXPECT_EQ(layer.GoOn(1, position), layer.GoOn(0, position));
      EXPECT_EQ(layer.Export(1, position + 22), layer.Export(0, position + 22));
    }
  }
}

// By steps, so that tokens are pending, up to a whole block of them.
TEST_P(H3StateTypeTest, PendingTokensTravel) {
  const auto backend = MakeCpuBackend({.threads = 2});
  for (const H3Shape& shape :
       {H3Shape{.d_model = 37, .d_state = 10}, H3Shape{.d_model = 20, .head_dim = 2, .d_state = 6},
        H3Shape{.d_model = 18, .head_dim = 3, .d_state = 2}}) {
    SCOPED_TRACE(shape.head_dim);
    const int64_t rows = shape.d_model * shape.head_dim;
    Layer layer(*backend, shape, GetParam());
    for (const int64_t prompt : {0, 5, 8}) {
      for (int64_t steps = 1; steps <= 17; ++steps) {
        const int64_t position = prompt + steps;
        SCOPED_TRACE(position);
        for (int32_t slot : {0, 1}) layer.FillWithNaN(slot);
        backend->ResetSlot(layer.state(), 0);
        if (prompt > 0) layer.Prefill(RandomValues(prompt * 3 * shape.d_model, 3), 0, 0);
        for (int64_t t = prompt; t < position; ++t) {
          layer.Step(RandomValues(3 * shape.d_model, static_cast<uint32_t>(t)), 0, t);
        }
        const StateValues kept = layer.Export(0, position);
        EXPECT_EQ(std::ssize(kept[2]), position % kCaptureTokens * rows);
        layer.Import(1, position, kept);
        EXPECT_EQ(layer.Export(1, position), kept);
        EXPECT_EQ(layer.Export(0, position), kept);  // exporting changes nothing
        EXPECT_EQ(layer.GoOn(1, position), layer.GoOn(0, position));
      }
    }
  }
}

// Back to any earlier token of the block, as if the later ones had never been.
TEST_P(H3StateTypeTest, GoesBackInsideOfABlock) {
  const auto backend = MakeCpuBackend({.threads = 1});
  for (const H3Shape& shape : {H3Shape{.d_model = 37, .d_state = 10},
                               H3Shape{.d_model = 18, .head_dim = 3, .d_state = 6}}) {
    Layer layer(*backend, shape, GetParam());
    const auto token = [&](uint32_t seed) { return RandomValues(3 * shape.d_model, seed); };
    for (int64_t back = 0; back <= 8; ++back) {
      for (const int32_t slot : {0, 1}) {
        backend->ResetSlot(layer.state(), slot);
        layer.Prefill(RandomValues(16 * 3 * shape.d_model, 3), slot, 0);
        for (int64_t t = 0; t < 8 - back; ++t) layer.Step(token(t), slot, 16 + t);
      }
      for (int64_t t = 8 - back; t < 8; ++t) layer.Step(token(100 + t), 0, 16 + t);
      EXPECT_EQ(layer.Export(0, 24 - back), layer.Export(1, 24 - back)) << back;
      EXPECT_EQ(layer.GoOn(0, 24 - back), layer.GoOn(1, 24 - back)) << back;
    }
  }
}

TEST_P(H3StateTypeTest, InputsAreRawAndOldestFirst) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Layer layer(*backend, {.d_model = 5, .d_state = 4}, GetParam());
  const Values qkv = RandomValues(7 * 15, 3);
  for (const int64_t tokens : {2, 7}) {
    backend->ResetSlot(layer.state(), 0);
    layer.Prefill({qkv.begin(), qkv.begin() + tokens * 15}, 0, 0);
    const Values inputs = layer.Export(0, tokens)[0];
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t n = 0; n < 4; ++n) {
        const int64_t t = tokens - 4 + n;
        const float raw = t < 0 ? 0 : qkv[static_cast<size_t>(t * 15 + 5 + c)];
        const float k = GetParam() == DType::kBF16 ? Rounded(raw) : raw;
        EXPECT_EQ(inputs[static_cast<size_t>(c * 4 + n)], k) << c << " " << n;
      }
    }
  }
}

TEST(H3StateTest, NamesItsArrays) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Layer layer(*backend, {.d_model = 12, .head_dim = 3, .d_state = 8});
  const std::vector<StateArray> arrays = layer.state().arrays();
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].name, "shift_inputs");
  EXPECT_EQ(arrays[0].shape, (std::vector<int64_t>{12, 8}));
  EXPECT_EQ(arrays[1].name, "modes");
  EXPECT_EQ(arrays[1].shape, (std::vector<int64_t>{3, 3, 4, 4, 2}));
  EXPECT_EQ(arrays[1].values(), 288);
  EXPECT_EQ(arrays[2].name, "pending");
  EXPECT_TRUE(arrays[2].pending);
  EXPECT_EQ(arrays[2].Of(5).shape, (std::vector<int64_t>{5, 3, 3, 4}));
}

double Norm(const Values& values) {
  double squares = 0;
  for (const float x : values) squares += double{x} * x;
  return std::sqrt(squares);
}

// Largest difference, in the 2-norm of what was expected.
double Error(const Values& actual, const Values& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(double{actual[i]} - expected[i]));
  }
  return worst / Norm(expected);
}

// The two forms of every state are the same, and one backend goes on from where the other is.
TEST(H3StateTest, TheReferenceHasTheSameState) {
  const auto cpu = MakeCpuBackend({.threads = 2});
  const auto reference = MakeReferenceBackend();
  for (const H3Shape& shape : {H3Shape{.d_model = 9, .d_state = 10},
                               H3Shape{.d_model = 12, .head_dim = 3, .d_state = 6}}) {
    for (const int64_t position : {1, 5, 23, 300}) {
      SCOPED_TRACE(position);
      Layer a(*cpu, shape), b(*reference, shape);
      const Values qkv = RandomValues(position * 3 * shape.d_model, 3);
      a.Prefill(qkv, 0, 0);
      b.Prefill(qkv, 0, 0);
      const StateValues x = a.Export(0, position), y = b.Export(0, position);
      EXPECT_EQ(x[0], y[0]);
      if (x[2].empty()) {
        EXPECT_LE(Error(x[1], y[1]), 2e-6);
      }
      a.Import(1, position, y);
      b.Import(1, position, x);
      EXPECT_EQ(b.Export(1, position)[0], x[0]);
      const Values expected = b.GoOn(0, position);
      EXPECT_LE(Error(a.GoOn(1, position), expected), 2e-6);
      EXPECT_LE(Error(b.GoOn(1, position), expected), 2e-6);
    }
  }
}

// Tokens [begin, end) of `qkv`, from position `begin` of slot 0, where a prefill takes them or
// steps do.
Values Advance(Layer& layer, const Values& qkv, int64_t begin, int64_t end, bool step) {
  const int64_t width = 3 * layer.d();
  const Values rows(qkv.begin() + begin * width, qkv.begin() + end * width);
  if (!step) return layer.Prefill(rows, 0, begin);
  Values all;
  for (int64_t t = 0; t < end - begin; ++t) {
    const Values token(rows.begin() + t * width, rows.begin() + (t + 1) * width);
    const Values o = layer.Step(token, 0, begin + t);
    all.insert(all.end(), o.begin(), o.end());
  }
  return all;
}

// The same of f32 states, whose modes are rounded to bf16 wherever those of bf16 states are.
Values AdvanceRounding(Layer& layer, const Values& qkv, int64_t begin, int64_t end, bool step) {
  Values all;
  for (int64_t t = begin; t < end;) {
    const bool transforms = !step && t == 0 && end >= kTransformTokens;
    const int64_t next =
        transforms ? kTransformTokens : std::min(end, (t / kCaptureTokens + 1) * kCaptureTokens);
    const Values o = Advance(layer, qkv, t, next, step);
    all.insert(all.end(), o.begin(), o.end());
    t = next;
    if (t % kCaptureTokens != 0) continue;
    StateValues state = layer.Export(0, t);
    state[1] = Rounded(state[1]);
    layer.Import(0, t, state);
  }
  return all;
}

// qkv with what states of bf16 take for k.
Values WithRoundedKeys(Values qkv, int64_t d) {
  for (size_t i = 0; i < qkv.size(); ++i) {
    if (std::cmp_equal(i / static_cast<size_t>(d) % 3, 1)) qkv[i] = Rounded(qkv[i]);
  }
  return qkv;
}

// To the bit: which is all that there is to say about them, whether prefills or steps take the
// tokens, in whole blocks or not.
TEST(H3StateTest, BF16IsF32ThatIsRoundedAfterEachBlock) {
  const auto backend = MakeCpuBackend({.threads = 2});
  struct Part {
    int64_t end;
    bool step;
  };
  const std::vector<std::vector<Part>> sequences = {
      {{40, true}, {60, false}, {67, true}, {100, false}},
      {{24, false}, {43, true}, {99, false}},
      {{255, false}, {280, true}},
      {{256, false}, {275, true}, {300, false}},
      {{611, false}, {630, true}}};
  for (const H3Shape& shape :
       {H3Shape{.d_model = 37, .d_state = 10}, H3Shape{.d_model = 33, .head_dim = 3, .d_state = 6},
        H3Shape{.d_model = 48}}) {
    SCOPED_TRACE(shape.head_dim);
    for (const std::vector<Part>& parts : sequences) {
      Layer half(*backend, shape, DType::kBF16), whole(*backend, shape);
      const Values qkv = RandomValues(parts.back().end * 3 * shape.d_model, 3);
      const Values rounded = WithRoundedKeys(qkv, shape.d_model);
      int64_t position = 0;
      for (const Part& part : parts) {
        EXPECT_EQ(Advance(half, qkv, position, part.end, part.step),
                  AdvanceRounding(whole, rounded, position, part.end, part.step))
            << "tokens " << position << " to " << part.end;
        position = part.end;
        EXPECT_EQ(half.Export(0, position), whole.Export(0, position)) << position;
      }
    }
  }
}

// The nearest numbers, ties to even.
TEST(H3StateTest, BF16RoundsWhatIsImported) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const H3Shape shape = {.d_model = 20, .head_dim = 2, .d_state = 6};
  Layer half(*backend, shape, DType::kBF16), whole(*backend, shape);
  for (const int64_t position : {13, 16}) {
    whole.Prefill(RandomValues(position * 3 * shape.d_model, 3), 0, 0);
    StateValues state = whole.Export(0, position);
    half.Import(0, position, state);
    state[0] = Rounded(state[0]);
    state[1] = Rounded(state[1]);
    EXPECT_EQ(half.Export(0, position), state);
    backend->ResetSlot(whole.state(), 0);
  }
}

// What the two backends hold after the same block differs where a sum lies between two numbers of
// bf16, by one of these; what comes of the same state, within the error of f32.
TEST(H3StateTest, TheReferenceRoundsAtTheSamePlaces) {
  const auto cpu = MakeCpuBackend({.threads = 2});
  const auto reference = MakeReferenceBackend();
  for (const H3Shape& shape : {H3Shape{.d_model = 9, .d_state = 10},
                               H3Shape{.d_model = 12, .head_dim = 3, .d_state = 6}}) {
    for (const int64_t prompt : {8, 256}) {
      Layer a(*cpu, shape, DType::kBF16), b(*reference, shape, DType::kBF16);
      const Values qkv = RandomValues((prompt + 80) * 3 * shape.d_model, 3);
      for (int64_t t = 0; t < prompt + 80;) {
        SCOPED_TRACE(t);
        const int64_t next = t == 0 ? prompt : t + 8;
        const bool step = t % 16 == 0 && t > 0;
        EXPECT_LE(Error(Advance(a, qkv, t, next, step), Advance(b, qkv, t, next, step)), 2e-6);
        t = next;
        const StateValues x = a.Export(0, t), y = b.Export(0, t);
        EXPECT_EQ(x[0], y[0]);
        const double of_f32 = 2e-6 * Norm(y[1]);
        for (size_t i = 0; i < x[1].size(); ++i) {
          EXPECT_EQ(x[1][i], Rounded(x[1][i]));
          EXPECT_NEAR(x[1][i], y[1][i], std::abs(y[1][i]) * 0x1p-7 + of_f32);
        }
        a.Import(0, t, y);
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::h3_state_test
