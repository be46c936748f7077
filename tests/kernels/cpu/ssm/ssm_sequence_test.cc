#include "kernels/cpu/ssm/ssm_sequence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "kernels/ssm/diagonal_ssm.h"
#include "tests/kernels/random_long_conv.h"
#include "tests/reference/long_conv_ssm.h"

namespace hippodrome::cpu::ssm_sequence_test {
namespace {

using Values = std::vector<float>;

// Small ones of every form, and two of several tiles and more modes than go together.
std::vector<RandomLongConv> Ssms() {
  std::vector<RandomLongConv> all = SmallLongConvs();
  all.emplace_back(DiagonalSsmParameters{.channels = 37,
                                         .heads = 37,
                                         .modes = 32,
                                         .n_ssm = 1,
                                         .form = StateMatrixForm::kExpReal,
                                         .scale = 2});
  all.emplace_back(NplrParameters{.channels = 33, .modes = 32, .n_ssm = 1});
  return all;
}

class Layer {
 public:
  explicit Layer(const RandomLongConv& ssm, int threads = 2)
      : pool_(threads), constants_(ssm.parameters()), state_(constants_.layout(), 4) {}

  int64_t d() const { return constants_.layout().channels; }
  SsmSlots& state() { return state_; }

  // Adjacent parts of `u`, of the slots and lengths given.
  Values Sequence(const Values& u, const std::vector<std::pair<int32_t, int32_t>>& lengths,
                  const std::vector<StateCapture>& captures = {}, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(u.size()) / d();
    const StridedMatrix in(rows, d(), gap, u);
    const StridedMatrix out(rows, d(), gap, Values(u.size(), 5.0f));
    std::vector<SequencePart> parts;
    int32_t row = 0;
    for (const auto& [slot, tokens] : lengths) {
      parts.push_back({.slot = slot, .first_row = row, .tokens = tokens});
      row += tokens;
    }
    SsmSequence(pool_, constants_, in.view(), state_, {parts, captures}, out.view());
    return out.values();
  }

  // u: [slots.size(), d]
  Values Step(const Values& u, const std::vector<int32_t>& slots, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(slots.size());
    const StridedMatrix in(rows, d(), gap, u);
    const StridedMatrix out(rows, d(), gap, Values(u.size(), 5.0f));
    const OwnedTensor indices = NewMatrix(1, rows, DType::kI32);
    CopyIn(slots, indices);
    SsmStep(pool_, constants_, in.view(), state_, indices, out.view());
    return out.values();
  }

  // What a slot holds.
  Values Export(int64_t slot) const {
    Values values(static_cast<size_t>(state_.arrays()[0].values()));
    const std::span<float> arrays[] = {values};
    state_.Export(slot, 1, arrays);
    return values;
  }

 private:
  ThreadPool pool_;
  SsmConstants constants_;
  SsmSlots state_;
};

Values Rows(const Values& u, int64_t d, int64_t first, int64_t count) {
  return {u.begin() + first * d, u.begin() + (first + count) * d};
}

// How far f32 may take y_t of a channel: roundings of the constants and of a few operations per
// token, each carried on as the state is. `inputs`: up to t; all of the sums' terms are at most
// those of their absolute values.
class Bound {
 public:
  Bound(const LongConvParameters& parameters, int64_t channel) {
    if (const auto* diagonal = std::get_if<DiagonalSsmParameters>(&parameters)) {
      const int64_t head = channel / (diagonal->channels / diagonal->heads);
      const DiagonalRecurrence modes = RecurrenceOfHead(*diagonal, head);
      for (size_t n = 0; n < modes.a.size(); ++n) {
        decay_.push_back(std::abs(modes.a[n]));
        weight_.push_back(std::abs(modes.w[n]));
      }
      skip_ = std::abs(diagonal->d[static_cast<size_t>(head)]);
    }
  }

  // Of a diagonal SSM, at its next input. Each mode: x = sum_l a^l u_{t-l}, with l roundings of a.
  double Next(double u) {
    if (size_.empty()) size_ = moved_ = std::vector<double>(decay_.size());
    double bound = 2 * skip_ * std::abs(u);
    for (size_t n = 0; n < decay_.size(); ++n) {
      moved_[n] = decay_[n] * (moved_[n] + kPerToken * size_[n]);
      size_[n] = decay_[n] * size_[n] + std::abs(u);
      moved_[n] += std::abs(u);
      const auto sums = static_cast<double>(2 * decay_.size());
      bound += weight_[n] * (moved_[n] + sums * size_[n]);
    }
    return kUnitRoundoff * bound;
  }

 private:
  // The rounding of a, and those of two products and their sums, of both parts.
  static constexpr double kPerToken = 4;

  std::vector<double> decay_, weight_, size_, moved_;
  double skip_ = 0;
};

TEST(SsmSequenceTest, ADiagonalSsmIsItsRecurrence) {
  constexpr int64_t kTokens = 300;
  for (const RandomLongConv& ssm : Ssms()) {
    const LongConvParameters parameters = ssm.parameters();
    if (!std::holds_alternative<DiagonalSsmParameters>(parameters)) continue;
    Layer layer(ssm);
    const auto reference = reference::MakeLongConvSsm(parameters, 1);
    const Values u = RandomValues(kTokens * layer.d(), 3);
    const Values y = layer.Sequence(u, {{0, kTokens}});
    for (int64_t c = 0; c < layer.d(); ++c) {
      Bound bound(parameters, c);
      reference::LongConvSsm::State x(static_cast<size_t>(reference->state_size()));
      for (int64_t t = 0; t < kTokens; ++t) {
        const auto i = static_cast<size_t>(t * layer.d() + c);
        const double allowed = bound.Next(u[i]);
        ASSERT_NEAR(y[i], reference->Step(c, u[i], x), allowed)
            << "token " << t << " channel " << c;
      }
    }
  }
}

// |dA| <= 1 in the norm of the state, so that errors of f32 add up and do not grow: t tokens are
// off by t times the error of one. Random signs add up to its root; four times that is allowed.
TEST(SsmSequenceTest, AnSsmOfLowRankIsItsRecurrence) {
  constexpr int64_t kTokens = 300;
  for (const RandomLongConv& ssm : Ssms()) {
    const LongConvParameters parameters = ssm.parameters();
    if (!std::holds_alternative<NplrParameters>(parameters)) continue;
    Layer layer(ssm);
    const auto reference = reference::MakeLongConvSsm(parameters, 1);
    const Values u = RandomValues(kTokens * layer.d(), 3);
    const Values y = layer.Sequence(u, {{0, kTokens}});
    for (int64_t c = 0; c < layer.d(); ++c) {
      reference::LongConvSsm::State x(static_cast<size_t>(reference->state_size()));
      double largest = 0;
      std::vector<double> expected;
      for (int64_t t = 0; t < kTokens; ++t) {
        expected.push_back(reference->Step(c, u[static_cast<size_t>(t * layer.d() + c)], x));
        largest = std::max(largest, std::abs(expected.back()));
      }
      const double allowed = 4 * kUnitRoundoff * std::sqrt(double{kTokens}) * (1 + largest) *
                             std::sqrt(static_cast<double>(reference->modes()));
      for (int64_t t = 0; t < kTokens; ++t) {
        ASSERT_NEAR(y[static_cast<size_t>(t * layer.d() + c)], expected[static_cast<size_t>(t)],
                    allowed)
            << "token " << t << " channel " << c << " of " << layer.d();
      }
    }
  }
}

// A state that was stepped to is that of a prefill, wherever that was cut.
TEST(SsmSequenceTest, CutsChangeNoBit) {
  constexpr int64_t kTokens = 150;
  for (const RandomLongConv& ssm : Ssms()) {
    Layer layer(ssm);
    const Values u = RandomValues(kTokens * layer.d(), 4);
    const Values whole = layer.Sequence(u, {{0, kTokens}});
    for (const int64_t cut : {1, 7, 8, 64, 149}) {
      layer.state().Reset(1);
      Values y = layer.Sequence(Rows(u, layer.d(), 0, cut), {{1, static_cast<int32_t>(cut)}});
      const Values rest = layer.Sequence(Rows(u, layer.d(), cut, kTokens - cut),
                                         {{1, static_cast<int32_t>(kTokens - cut)}});
      y.insert(y.end(), rest.begin(), rest.end());
      EXPECT_EQ(y, whole) << cut;
      EXPECT_EQ(layer.Export(1), layer.Export(0)) << cut;
    }
    layer.state().Reset(2);
    for (int64_t t = 0; t < kTokens; ++t) {
      EXPECT_EQ(layer.Step(Rows(u, layer.d(), t, 1), {2}), Rows(whole, layer.d(), t, 1)) << t;
    }
    EXPECT_EQ(layer.Export(2), layer.Export(0));
  }
}

TEST(SsmSequenceTest, WhatRunsBesideASequenceChangesNoBit) {
  for (const RandomLongConv& ssm : Ssms()) {
    Layer alone(ssm, 1);
    Layer layer(ssm, 3);
    const Values u = RandomValues(90 * alone.d(), 5);
    const Values first = alone.Sequence(Rows(u, alone.d(), 0, 20), {{0, 20}});
    const Values second = alone.Sequence(Rows(u, alone.d(), 25, 65), {{1, 65}});
    // Between them an inert part, whose slot nobody touches.
    const Values y = layer.Sequence(u, {{3, 20}, {-1, 5}, {1, 65}}, {}, 3);
    EXPECT_EQ(Rows(y, alone.d(), 0, 20), first);
    EXPECT_EQ(Rows(y, alone.d(), 25, 65), second);
    EXPECT_EQ(layer.Export(3), alone.Export(0));
    EXPECT_EQ(layer.Export(0), Values(layer.Export(0).size()));
    // Inert rows of a step are zero.
    const Values step = layer.Step(Rows(u, alone.d(), 0, 3), {1, -1, 3}, 2);
    EXPECT_EQ(Rows(step, alone.d(), 0, 1), alone.Step(Rows(u, alone.d(), 0, 1), {1}));
    EXPECT_EQ(Rows(step, alone.d(), 1, 1), Values(static_cast<size_t>(alone.d())));
    EXPECT_EQ(Rows(step, alone.d(), 2, 1), alone.Step(Rows(u, alone.d(), 2, 1), {0}));
  }
}

TEST(SsmSequenceTest, CapturesAreTheStatesOnTheWay) {
  for (const RandomLongConv& ssm : Ssms()) {
    Layer layer(ssm);
    const Values u = RandomValues(60 * layer.d(), 6);
    Layer plain(ssm);
    const Values whole = plain.Sequence(u, {{0, 10}, {1, 50}});
    EXPECT_EQ(layer.Sequence(u, {{0, 10}, {1, 50}}, {{1, 8, 2}, {1, 48, 3}}), whole);
    EXPECT_EQ(layer.Export(0), plain.Export(0));
    EXPECT_EQ(layer.Export(1), plain.Export(1));
    plain.state().Reset(2);
    plain.Sequence(Rows(u, layer.d(), 10, 8), {{2, 8}});
    EXPECT_EQ(layer.Export(2), plain.Export(2));
    plain.Sequence(Rows(u, layer.d(), 18, 40), {{2, 40}});
    EXPECT_EQ(layer.Export(3), plain.Export(2));
  }
}

TEST(SsmSequenceTest, AStateGoesOnWhereItIsImported) {
  for (const RandomLongConv& ssm : Ssms()) {
    Layer layer(ssm);
    const Values u = RandomValues(30 * layer.d(), 7);
    const Values first = Rows(u, layer.d(), 0, 21);
    layer.Sequence(first, {{0, 21}});
    const Values state = layer.Export(0);
    EXPECT_NE(state, Values(state.size()));
    Layer other(ssm);
    other.Sequence(u, {{2, 30}});  // what the slot held is gone
    const std::span<const float> arrays[] = {state};
    other.state().Import(2, 21, arrays);
    EXPECT_EQ(other.Export(2), state);
    const Values rest = Rows(u, layer.d(), 21, 9);
    EXPECT_EQ(other.Sequence(rest, {{2, 9}}), layer.Sequence(rest, {{0, 9}}));
    EXPECT_EQ(other.Export(2), layer.Export(0));
  }
}

TEST(SsmSlotsTest, CopiesAndEmptiesSlots) {
  Layer layer(Ssms().back());
  const Values u = RandomValues(5 * layer.d(), 8);
  layer.Sequence(u, {{1, 5}});
  ThreadPool pool(1);
  layer.state().Copy(pool, 1, 3);
  EXPECT_EQ(layer.Export(3), layer.Export(1));
  layer.state().Reset(1);
  EXPECT_EQ(layer.Export(1), Values(layer.Export(1).size()));
  EXPECT_NE(layer.Export(3), layer.Export(1));
  EXPECT_EQ(layer.state().slots(), 4);
  EXPECT_GE(layer.state().bytes_per_slot(),
            layer.state().arrays()[0].values() * static_cast<int64_t>(sizeof(float)));
}

}  // namespace
}  // namespace hippodrome::cpu::ssm_sequence_test
