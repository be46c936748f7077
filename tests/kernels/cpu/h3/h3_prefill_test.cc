#include "kernels/cpu/h3/h3_prefill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/h3/h3_step.h"
#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/reference/published_state.h"

namespace hippodrome::cpu::h3_prefill_test {
namespace {

using Values = std::vector<float>;

// Constants of the error bounds; about twice the largest error seen.
constexpr double kOutputConstant = 2;
constexpr double kStateConstant = 1;

// log2 for the length, and a few roundings that every output has.
double Roundoff(int64_t steps) { return kUnitRoundoff * (6 + std::log2(double(steps))); }

// A layer and one sequence of random activations.
struct Problem {
  explicit Problem(const H3Shape& shape, int64_t tokens, int threads = 2)
      : pool(threads),
        layer(shape),
        constants(pool, layer.parameters()),
        d(shape.d_model),
        steps(tokens),
        qkv(RandomValues(tokens * 3 * d, 7)) {}

  // o of tokens [begin, end), from position `start` (by default, begin) of slot `slot`.
  Values Run(H3Slots& state, int64_t slot, int64_t begin, int64_t end, int64_t gap = 0,
             int64_t start = -1) {
    const Values rows(qkv.begin() + begin * 3 * d, qkv.begin() + end * 3 * d);
    const StridedMatrix x(end - begin, 3 * d, gap, rows);
    const StridedMatrix o(end - begin, d, gap);
    const SequencePart part = {.slot = static_cast<int32_t>(slot),
                               .tokens = static_cast<int32_t>(end - begin),
                               .start = static_cast<int32_t>(start < 0 ? begin : start)};
    H3Sequence(pool, constants, x.view(), state, {{&part, 1}, {}}, o.view());
    return o.values();
  }

  StateValues StateAt(const H3Slots& state, int64_t slot, int64_t position) const {
    return {state, [&](std::span<const std::span<float>> arrays) {
              return state.Export(slot, position, arrays);
            }};
  }
  PublishedState Export(const H3Slots& state, int64_t slot, int64_t position) const {
    return Published(layer.parameters(), StateAt(state, slot, position));
  }

  void ExpectOutput(const H3Expectation& expected, const Values& o) const {
    for (size_t i = 0; i < o.size(); ++i) {
      const double scale = Roundoff(steps) * expected.o_scale[i % static_cast<size_t>(d)] + 1e-30;
      ASSERT_NEAR(o[i], expected.o[i], kOutputConstant * scale)
          << "element " << i << " of " << steps << " x " << d;
    }
  }

  void ExpectState(const H3Expectation& expected, const PublishedState& state) const {
    ASSERT_EQ(state.shift.size(), expected.shift.size());
    for (size_t i = 0; i < state.shift.size(); ++i) {
      ASSERT_NEAR(state.shift[i], expected.shift[i], 1e-5);
    }
    ASSERT_EQ(state.diagonal.size(), expected.diagonal.size());
    for (size_t i = 0; i < state.diagonal.size(); ++i) {
      const double scale = Roundoff(steps) * expected.state_scale[i / 2] + 1e-30;
      ASSERT_NEAR(state.diagonal[i], expected.diagonal[i], kStateConstant * scale) << i;
    }
  }

  ThreadPool pool;
  RandomH3 layer;
  H3PrefillWeights constants;
  int64_t d;
  int64_t steps;
  Values qkv;
};

void ExpectSequence(const H3Shape& shape, int64_t steps, int64_t gap = 0) {
  Problem p(shape, steps);
  H3Slots state(p.constants, 2);
  const Values o = p.Run(state, 1, 0, steps, gap);
  const H3Expectation expected = ExpectedH3(p.layer.parameters(), p.qkv);
  p.ExpectOutput(expected, o);
  p.ExpectState(expected, p.Export(state, 1, steps));
}

TEST(H3SequenceTest, EveryLength) {
  for (const int64_t steps : {1,   2,   7,   8,   63,  64,  65,  223,  224,  225,
                              255, 256, 257, 448, 511, 512, 513, 1000, 1500, 4096}) {
    SCOPED_TRACE(steps);
    ExpectSequence({.d_model = 16}, steps);
  }
}

TEST(H3SequenceTest, EveryShape) {
  for (const int64_t steps : {5, 300, 601}) {
    for (const int64_t d : {1, 5, 33}) ExpectSequence({.d_model = d}, steps);
    for (const int64_t d_state : {2, 6, 20, 128}) {
      SCOPED_TRACE(d_state);
      ExpectSequence({.d_model = 17, .d_state = d_state}, steps);
    }
    ExpectSequence({.d_model = 40, .n_ssm = 3}, steps);
    ExpectSequence({.d_model = 20, .discretization = Discretization::kZoh}, steps);
  }
}

TEST(H3SequenceTest, EveryHeadDimension) {
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{16, 2}, {20, 4}, {24, 8}, {33, 3}, {16, 16}, {40, 20}}) {
      SCOPED_TRACE(head_dim);
      const H3Shape shape = {
          .d_model = d, .head_dim = head_dim, .d_state = 8, .output_order = order};
      ExpectSequence(shape, 9);
      ExpectSequence(shape, 520);
    }
  }
}

TEST(H3SequenceTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3, 16}) {
    ExpectSequence({.d_model = 37}, 530, gap);
    ExpectSequence({.d_model = 12, .head_dim = 2}, 30, gap);
  }
}

TEST(H3SequenceTest, ChunksMakeTheWhole) {
  for (const int64_t head_dim : {1, 2}) {
    Problem p({.d_model = 18, .head_dim = head_dim}, 1300);
    const H3Expectation expected = ExpectedH3(p.layer.parameters(), p.qkv);
    for (const int64_t chunk : {1, 3, 63, 64, 100, 512, 700}) {
      SCOPED_TRACE(chunk);
      H3Slots state(p.constants, 1);
      Values o;
      for (int64_t t = 0; t < p.steps; t += chunk) {
        const Values part = p.Run(state, 0, t, std::min(t + chunk, p.steps));
        o.insert(o.end(), part.begin(), part.end());
      }
      p.ExpectOutput(expected, o);
      p.ExpectState(expected, p.Export(state, 0, p.steps));
    }
  }
}

TEST(H3SequenceTest, ErrorsDoNotGrowWithTime) {
  Problem p({.d_model = 2}, 50000);
  H3Slots state(p.constants, 1);
  const Values o = p.Run(state, 0, 0, p.steps);
  const H3Expectation expected = ExpectedH3(p.layer.parameters(), p.qkv);
  // The end, on the scale of an input as long as the memory of the layer: 4096 steps.
  for (size_t i = o.size() - 2000; i < o.size(); ++i) {
    const double scale = Roundoff(4096) * expected.o_scale[i % 2] * std::sqrt(4096.0 / 50000);
    ASSERT_NEAR(o[i], expected.o[i], kOutputConstant * scale);
  }
}

TEST(H3SlotsTest, ThreadsCopyPieces) {
  Problem p({.d_model = 500}, 30);
  H3Slots state(p.constants, 2);
  ASSERT_GT(state.bytes_per_slot(), 3 << 16);
  p.Run(state, 0, 0, 30);
  ThreadPool pool(3);
  state.Copy(pool, 0, 1);
  const auto floats = static_cast<size_t>(state.bytes_per_slot()) / sizeof(float);
  EXPECT_TRUE(std::equal(state.Slot(0), state.Slot(0) + floats, state.Slot(1)));
}

TEST(H3SequenceTest, SlotsAreIndependent) {
  Problem p({.d_model = 19}, 90);
  H3Slots state(p.constants, 3);
  const Values first = p.Run(state, 1, 0, 90);
  p.Run(state, 0, 5, 30, 0, 0);
  ThreadPool pool(1);
  state.Copy(pool, 1, 2);
  const PublishedState copied = p.Export(state, 2, 90);
  EXPECT_EQ(copied.diagonal, p.Export(state, 1, 90).diagonal);
  EXPECT_EQ(copied.shift, p.Export(state, 1, 90).shift);
  EXPECT_EQ(p.Run(state, 1, 0, 20, 0, 90), p.Run(state, 2, 0, 20, 0, 90));
  state.Reset(2);
  for (const float x : p.Export(state, 2, 0).diagonal) ASSERT_EQ(x, 0);
  EXPECT_EQ(p.Run(state, 2, 0, 90), first);
}

// A part of a ragged pass: rows of the problem's tokens, and where it goes on.
struct Rest {
  int64_t start;  // so many tokens are in its slot
  int64_t tokens;
  bool inert = false;
  std::vector<int32_t> captures = {};  // after so many of its tokens
};

// Runs all of `rests` in one pass, and gives o of all rows. Rest i is in slot i, captures in the
// slots behind.
Values RunTogether(Problem& p, H3Slots& state, const std::vector<Rest>& rests) {
  std::vector<SequencePart> parts;
  std::vector<StateCapture> captures;
  Values rows;
  int32_t next_slot = static_cast<int32_t>(rests.size());
  for (const Rest& rest : rests) {
    const auto index = static_cast<int32_t>(parts.size());
    parts.push_back({.slot = rest.inert ? -1 : index,
                     .first_row = static_cast<int32_t>(std::ssize(rows) / (3 * p.d)),
                     .tokens = static_cast<int32_t>(rest.tokens),
                     .start = static_cast<int32_t>(rest.start)});
    for (const int32_t tokens : rest.captures) captures.push_back({index, tokens, next_slot++});
    rows.insert(rows.end(), p.qkv.begin() + rest.start * 3 * p.d,
                p.qkv.begin() + (rest.start + rest.tokens) * 3 * p.d);
  }
  const int64_t count = std::ssize(rows) / (3 * p.d);
  const StridedMatrix x(count, 3 * p.d, 0, rows);
  const StridedMatrix o(count, p.d, 0);
  H3Sequence(p.pool, p.constants, x.view(), state, {parts, captures}, o.view());
  return o.values();
}

// With states of each type.
std::vector<std::pair<H3Shape, DType>> ShapesOfTypes() {
  std::vector<std::pair<H3Shape, DType>> shapes;
  for (const DType type : {DType::kF32, DType::kBF16}) {
    shapes.emplace_back(H3Shape{.d_model = 40}, type);
    shapes.emplace_back(H3Shape{.d_model = 18, .head_dim = 3, .d_state = 10}, type);
  }
  return shapes;
}

TEST(H3SequenceTest, PartsTogetherArePartsAlone) {
  const std::vector<Rest> rests = {{0, 300, false, {256, 264, 296}},
                                   {64, 7},
                                   {13, 1},
                                   {24, 40, true},
                                   {0, 100, false, {8, 64, 96}},
                                   {13, 90, false, {3, 43}},
                                   {256, 257, false, {8, 256}},
                                   {0, 1}};
  for (const auto& [shape, type] : ShapesOfTypes()) {
    for (const int threads : {1, 2, 3}) {
      Problem p(shape, 513, threads);
      H3Slots state(p.constants, 18, type), alone(p.constants, 8, type);
      for (size_t i = 0; i < rests.size(); ++i) {
        if (rests[i].start == 0) continue;
        for (H3Slots* slots : {&state, &alone}) {
          p.Run(*slots, static_cast<int64_t>(i), 0, rests[i].start);
        }
      }
      const StateValues untouched = p.StateAt(state, 3, 24);
      const Values o = RunTogether(p, state, rests);
      auto row = o.begin();
      for (size_t i = 0; i < rests.size(); ++i) {
        const Rest& rest = rests[i];
        const auto slot = static_cast<int64_t>(i);
        const Values own(row, row + rest.tokens * p.d);
        row += rest.tokens * p.d;
        if (rest.inert) continue;
        EXPECT_EQ(own, p.Run(alone, slot, rest.start, rest.start + rest.tokens)) << i;
        EXPECT_EQ(p.StateAt(state, slot, rest.start + rest.tokens),
                  p.StateAt(alone, slot, rest.start + rest.tokens))
            << i;
      }
      EXPECT_EQ(p.StateAt(state, 3, 24), untouched);
    }
  }
}

// A state that is copied on the way is that of a prefill which ends there, and goes on as it does.
TEST(H3SequenceTest, CapturesAreStatesOfShorterPrefills) {
  const std::vector<std::pair<int64_t, std::vector<int32_t>>> prefills = {
      {600, {256, 264, 512, 600}}, {257, {256}}, {255, {8, 16, 248}}, {64, {32, 64}}};
  for (const auto& [shape, type] : ShapesOfTypes()) {
    Problem p(shape, 640);
    for (const auto& [tokens, captures] : prefills) {
      H3Slots state(p.constants, 6, type);
      std::memset(state.Slot(1), 0xff, static_cast<size_t>(5 * state.bytes_per_slot()));  // NaN
      RunTogether(p, state, {{0, tokens, false, captures}});
      for (size_t i = 0; i < captures.size(); ++i) {
        SCOPED_TRACE(captures[i]);
        H3Slots fresh(p.constants, 1, type);
        p.Run(fresh, 0, 0, captures[i]);
        const auto slot = static_cast<int64_t>(i + 1);
        EXPECT_EQ(p.StateAt(state, slot, captures[i]), p.StateAt(fresh, 0, captures[i]));
        EXPECT_EQ(p.Run(state, slot, captures[i], captures[i] + 40),
                  p.Run(fresh, 0, captures[i], captures[i] + 40));
      }
    }
  }
}

// Prompts may be cut at absolute multiples of kCaptureTokens, if not inside of the transform.
TEST(H3SequenceTest, CutsAtMultiplesChangeNoBit) {
  for (const auto& [tokens, cuts] : std::vector<std::pair<int64_t, std::vector<int64_t>>>{
           {600, {256}}, {600, {264, 512}}, {600, {256, 264, 272, 592}}, {255, {8, 128, 248}}}) {
    for (const auto& [shape, type] : ShapesOfTypes()) {
      Problem p(shape, tokens);
      H3Slots whole(p.constants, 1, type), cut(p.constants, 1, type);
      Values o;
      for (size_t i = 0; i <= cuts.size(); ++i) {
        const Values part =
            p.Run(cut, 0, i == 0 ? 0 : cuts[i - 1], i == cuts.size() ? tokens : cuts[i]);
        o.insert(o.end(), part.begin(), part.end());
      }
      EXPECT_EQ(o, p.Run(whole, 0, 0, tokens));
      EXPECT_EQ(p.StateAt(cut, 0, tokens), p.StateAt(whole, 0, tokens));
    }
  }
}

TEST(H3SequenceTest, CapturesFitAtMultiplesBehindTheTransform) {
  const SequencePart transformed = {.slot = 0, .tokens = 300};
  EXPECT_TRUE(FitsCapture(transformed, 256));
  EXPECT_TRUE(FitsCapture(transformed, 296));
  for (const int64_t tokens : {0, 8, 248, 260, 304}) {
    EXPECT_FALSE(FitsCapture(transformed, tokens)) << tokens;
  }
  const SequencePart scanned = {.slot = 0, .tokens = 300, .start = 13};
  EXPECT_TRUE(FitsCapture(scanned, 3));
  EXPECT_TRUE(FitsCapture(scanned, 299));
  EXPECT_FALSE(FitsCapture(scanned, 8));
}

TEST(H3SequenceTest, RepeatsBitForBitOnManyThreads) {
  Problem one({.d_model = 100}, 700, 1);
  Problem three({.d_model = 100}, 700, 3);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    H3Slots a(one.constants, 1, type);
    H3Slots b(three.constants, 1, type);
    EXPECT_EQ(one.Run(a, 0, 0, 700), three.Run(b, 0, 0, 700));
  }
}

TEST(H3SequenceTest, CountsItsBytes) {
  Problem p({.d_model = 32, .head_dim = 2, .d_state = 8}, 1);
  const H3Slots state(p.constants, 5);
  // 32 channels of 8 inputs, 64 rows of 4 complex modes, two rows of eight tokens for each of both,
  // and a line for each of two groups.
  EXPECT_EQ(state.bytes_per_slot(), 32 * 8 * 4 + 64 * 4 * 8 + (32 + 64) * 16 * 4 + 64);
  EXPECT_EQ(state.slots(), 5);
  // Of bf16 the inputs and modes.
  const H3Slots half(p.constants, 5, DType::kBF16);
  EXPECT_EQ(half.bytes_per_slot(), 32 * 8 * 2 + 64 * 4 * 4 + (32 + 64) * 16 * 4 + 64);
  // Once in eight steps these are read and the modes written, with eight inputs to the rings.
  EXPECT_EQ(state.bytes_per_step() - half.bytes_per_step(),
            (32 * (8 + 8) + 64 * 4 * 2 * 2) * 2 / 8);
}

// What states of bf16 may change in o [T, d] of one sequence from an empty state, head_dim 1: each
// rounding is off by 2^-8 of its number at most, and all that follows carries it on. Sums of
// magnitudes stand for the numbers, so that nothing is taken to cancel.
std::vector<double> RoundingBounds(const H3Parameters& p, const Values& qkv) {
  constexpr double kRounding = 0x1p-8;
  const int64_t d = p.d_model;
  const int64_t tokens = std::ssize(qkv) / (3 * d);
  const auto magnitude = [&](int64_t t, int64_t column) {
    return std::abs(double{qkv[static_cast<size_t>(t * 3 * d + column)]});
  };
  std::vector<double> bounds(static_cast<size_t>(tokens * d));
  for (int64_t c = 0; c < d; ++c) {
    const reference::H3ShiftSsm shift = reference::Shift(p, c);
    std::vector<double> taps, x(static_cast<size_t>(p.d_state));
    for (int64_t j = 0; j < p.d_state; ++j) taps.push_back(std::abs(shift.Step(j == 0 ? 1 : 0, x)));
    const reference::H3DiagonalSsm ssm = reference::Discretize(p, c);
    std::vector<double> largest(ssm.da.size()), error(ssm.da.size());  // of x / dB
    for (int64_t t = 0; t < tokens; ++t) {
      double u = 0;  // ks v
      for (int64_t j = 0; j <= std::min(t, p.d_state - 1); ++j) {
        u += taps[static_cast<size_t>(j)] * magnitude(t - j, d + c) * magnitude(t, 2 * d + c);
      }
      double y = std::abs(ssm.d) * kRounding * u;
      const bool rounds =
          (t + 1) % kScanSteps == 0 && (tokens < kTransformTokens || t + 1 >= kTransformTokens);
      for (size_t n = 0; n < ssm.da.size(); ++n) {
        largest[n] = std::abs(ssm.da[n]) * largest[n] + (1 + kRounding) * u;
        error[n] = std::abs(ssm.da[n]) * error[n] + kRounding * u;
        y += 2 * std::abs(ssm.c[n] * ssm.db[n]) * error[n];
        if (!rounds) continue;
        error[n] += kRounding * largest[n];
        largest[n] *= 1 + kRounding;
      }
      bounds[static_cast<size_t>(t * d + c)] = magnitude(t, c) * y;
    }
  }
  return bounds;
}

TEST(H3SequenceTest, StatesOfBF16AreOffByTheirRoundingsAtMost) {
  for (const int64_t d_state : {10, 64}) {
    for (const int64_t tokens : {40, 255, 256, 1000}) {
      SCOPED_TRACE(tokens);
      Problem p({.d_model = 19, .d_state = d_state}, tokens);
      H3Slots whole(p.constants, 1), half(p.constants, 1, DType::kBF16);
      const Values expected = p.Run(whole, 0, 0, tokens);
      const Values o = p.Run(half, 0, 0, tokens);
      const H3Expectation scales = ExpectedH3(p.layer.parameters(), p.qkv);
      const std::vector<double> bounds = RoundingBounds(p.layer.parameters(), p.qkv);
      EXPECT_NE(o, expected);
      for (size_t i = 0; i < o.size(); ++i) {
        const double of_f32 =
            2 * kOutputConstant * Roundoff(tokens) * scales.o_scale[i % static_cast<size_t>(p.d)];
        ASSERT_NEAR(o[i], expected[i], bounds[i] + of_f32) << i;
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::h3_prefill_test
