#include "kernels/cpu/attention/linear_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/reference/linear_attention.h"

namespace hippodrome::cpu::linear_attention_test {
namespace {

using Values = std::vector<float>;

// Of one element, of no whole vector, of a whole one, and of several.
const LinearAttentionShape kShapes[] = {{.heads = 3, .head_dim = 1},
                                        {.heads = 2, .head_dim = 5},
                                        {.heads = 1, .head_dim = 16},
                                        {.heads = 2, .head_dim = 40},
                                        {.heads = 1, .head_dim = 64}};

class Layer {
 public:
  explicit Layer(const LinearAttentionShape& shape, int threads = 2)
      : shape_(shape), pool_(threads), state_(shape, 4) {}

  int64_t d() const { return shape_.heads * shape_.head_dim; }
  LinearAttentionSlots& state() { return state_; }

  Values Inputs(int64_t rows, uint32_t seed) const { return RandomValues(rows * 3 * d(), seed, 3); }
  // Rows [first, first + count) of qkv, or of o.
  Values Rows(const Values& of, int64_t cols, int64_t first, int64_t count) const {
    return {of.begin() + first * cols, of.begin() + (first + count) * cols};
  }
  Values QkvRows(const Values& qkv, int64_t first, int64_t count) const {
    return Rows(qkv, 3 * d(), first, count);
  }

  // Adjacent parts of `qkv`, of the slots and lengths given.
  Values Sequence(const Values& qkv, const std::vector<std::pair<int32_t, int32_t>>& lengths,
                  const std::vector<StateCapture>& captures = {}, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(qkv.size()) / (3 * d());
    const StridedMatrix in(rows, 3 * d(), gap, qkv);
    const StridedMatrix out(rows, d(), gap, Values(qkv.size() / 3, 5.0f));
    std::vector<SequencePart> parts;
    int32_t row = 0;
    for (const auto& [slot, tokens] : lengths) {
      parts.push_back({.slot = slot, .first_row = row, .tokens = tokens});
      row += tokens;
    }
    LinearAttentionSequence(pool_, shape_, in.view(), state_, {parts, captures}, out.view());
    return out.values();
  }

  Values Step(const Values& qkv, const std::vector<int32_t>& slots, int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(slots.size());
    const StridedMatrix in(rows, 3 * d(), gap, qkv);
    const StridedMatrix out(rows, d(), gap, Values(qkv.size() / 3, 5.0f));
    const OwnedTensor indices = NewMatrix(1, rows, DType::kI32);
    CopyIn(slots, indices);
    LinearAttentionStep(pool_, shape_, in.view(), state_, indices, out.view());
    return out.values();
  }

  Values Whole(const Values& qkv, int64_t sequences) {
    const auto rows = static_cast<int64_t>(qkv.size()) / (3 * d());
    const StridedMatrix in(rows, 3 * d(), 0, qkv);
    const StridedMatrix out(rows, d(), 0);
    CausalLinearAttention(pool_, shape_, in.view(), sequences, out.view());
    return out.values();
  }

  // What a slot holds.
  std::vector<Values> Export(int64_t slot) const {
    std::vector<Values> values;
    for (const StateArray& array : state_.arrays()) {
      values.emplace_back(static_cast<size_t>(array.values()), NAN);
    }
    state_.Export(slot, 1, std::vector<std::span<float>>(values.begin(), values.end()));
    return values;
  }
  void Import(int64_t slot, const std::vector<Values>& values) {
    state_.Import(slot, 1, std::vector<std::span<const float>>(values.begin(), values.end()));
  }

 private:
  LinearAttentionShape shape_;
  ThreadPool pool_;
  LinearAttentionSlots state_;
};

// How far f32 may take one element of o_t = N / D. Features of q and k are off by 4 roundings
// (those of exp(), and of its argument), their products with v and with each other by 2, and of
// each term the sums over keys and over the head by one for each addition, in N and in D alike; D
// has no terms that cancel, so that its relative error becomes that of the quotient.
double Bound(const LinearAttentionShape& shape, int64_t t, double weighted_v) {
  constexpr int64_t kPerTerm = 4 + 4 + 2;
  return Gamma(2 * (t + 1 + shape.head_dim + kPerTerm) + 1) * weighted_v;
}

// sum_s w_ts |v_s| for one head and column.
double WeightedSize(const LinearAttentionShape& shape, const Values& qkv, int64_t t, int64_t c) {
  const int64_t n = shape.head_dim;
  const int64_t d = shape.heads * n;
  const auto at = [&](int64_t row, int64_t column) -> double {
    return qkv[static_cast<size_t>(row * 3 * d + column)];
  };
  double sum = 0;
  double total = kLinearAttentionEpsilon;
  for (int64_t s = 0; s <= t; ++s) {
    double a = 0;
    for (int64_t i = c / n * n; i < (c / n + 1) * n; ++i) {
      a += reference::LinearAttentionFeature(at(t, i)) *
           reference::LinearAttentionFeature(at(s, d + i));
    }
    sum += a * std::abs(at(s, 2 * d + c));
    total += a;
  }
  return sum / total;
}

TEST(LinearAttentionTest, IsItsRecurrence) {
  constexpr int64_t kTokens = 150;
  for (const LinearAttentionShape& shape : kShapes) {
    Layer layer(shape);
    const int64_t d = layer.d();
    const Values qkv = layer.Inputs(kTokens, 3);
    const Values o = layer.Sequence(qkv, {{0, kTokens}}, {}, 3);
    EXPECT_EQ(layer.Whole(qkv, 1), o);
    reference::LinearAttentionState state(shape, 1);
    for (int64_t t = 0; t < kTokens; ++t) {
      std::vector<double> row(qkv.begin() + t * 3 * d, qkv.begin() + (t + 1) * 3 * d);
      std::vector<double> expected(static_cast<size_t>(d));
      state.Step(0, {row.data(), DType::kF64, 1, 3 * d, 3 * d},
                 {expected.data(), DType::kF64, 1, d, d});
      for (int64_t c = 0; c < d; ++c) {
        ASSERT_NEAR(o[static_cast<size_t>(t * d + c)], expected[static_cast<size_t>(c)],
                    Bound(shape, t, WeightedSize(shape, qkv, t, c)))
            << "token " << t << " channel " << c << " head_dim " << shape.head_dim;
      }
    }
  }
}

// A state that was stepped to is that of a prefill, wherever that was cut.
TEST(LinearAttentionTest, CutsChangeNoBit) {
  constexpr int64_t kTokens = 150;
  for (const LinearAttentionShape& shape : kShapes) {
    Layer layer(shape);
    const Values qkv = layer.Inputs(kTokens, 4);
    const Values whole = layer.Sequence(qkv, {{0, kTokens}});
    for (const int64_t cut : {1, 7, 8, 64, 149}) {
      layer.state().Reset(1);
      Values o = layer.Sequence(layer.QkvRows(qkv, 0, cut), {{1, static_cast<int32_t>(cut)}});
      const Values rest = layer.Sequence(layer.QkvRows(qkv, cut, kTokens - cut),
                                         {{1, static_cast<int32_t>(kTokens - cut)}});
      o.insert(o.end(), rest.begin(), rest.end());
      EXPECT_EQ(o, whole) << cut;
      EXPECT_EQ(layer.Export(1), layer.Export(0)) << cut;
    }
    for (int64_t t = 0; t < kTokens; ++t) {
      EXPECT_EQ(layer.Step(layer.QkvRows(qkv, t, 1), {2}), layer.Rows(whole, layer.d(), t, 1)) << t;
    }
    EXPECT_EQ(layer.Export(2), layer.Export(0));
  }
}

TEST(LinearAttentionTest, WhatRunsBesideASequenceChangesNoBit) {
  for (const LinearAttentionShape& shape : kShapes) {
    Layer alone(shape, 1);
    Layer layer(shape, 3);
    const int64_t d = alone.d();
    const Values qkv = alone.Inputs(90, 5);
    const Values first = alone.Sequence(alone.QkvRows(qkv, 0, 20), {{0, 20}});
    const Values second = alone.Sequence(alone.QkvRows(qkv, 25, 65), {{1, 65}});
    // Between them an inert part, whose slot nobody touches.
    const Values o = layer.Sequence(qkv, {{3, 20}, {-1, 5}, {1, 65}}, {}, 3);
    EXPECT_EQ(alone.Rows(o, d, 0, 20), first);
    EXPECT_EQ(alone.Rows(o, d, 25, 65), second);
    EXPECT_EQ(layer.Export(3), alone.Export(0));
    EXPECT_EQ(layer.Export(0), Layer(shape).Export(0));
    // Inert rows of a step are zero.
    const Values step = layer.Step(alone.QkvRows(qkv, 0, 3), {1, -1, 3}, 2);
    EXPECT_EQ(alone.Rows(step, d, 0, 1), alone.Step(alone.QkvRows(qkv, 0, 1), {1}));
    EXPECT_EQ(alone.Rows(step, d, 1, 1), Values(static_cast<size_t>(d)));
    EXPECT_EQ(alone.Rows(step, d, 2, 1), alone.Step(alone.QkvRows(qkv, 2, 1), {0}));
    // So are whole sequences.
    const Values both = alone.Whole(qkv, 2);
    EXPECT_EQ(alone.Rows(both, d, 45, 45), alone.Whole(alone.QkvRows(qkv, 45, 45), 1));
  }
}

TEST(LinearAttentionTest, CapturesAreTheStatesOnTheWay) {
  for (const LinearAttentionShape& shape : kShapes) {
    Layer layer(shape);
    Layer plain(shape);
    const Values qkv = layer.Inputs(60, 6);
    const Values whole = plain.Sequence(qkv, {{0, 10}, {1, 50}});
    EXPECT_EQ(layer.Sequence(qkv, {{0, 10}, {1, 50}}, {{1, 8, 2}, {1, 48, 3}}), whole);
    EXPECT_EQ(layer.Export(0), plain.Export(0));
    EXPECT_EQ(layer.Export(1), plain.Export(1));
    plain.Sequence(plain.QkvRows(qkv, 10, 8), {{2, 8}});
    EXPECT_EQ(layer.Export(2), plain.Export(2));
    plain.Sequence(plain.QkvRows(qkv, 18, 40), {{2, 40}});
    EXPECT_EQ(layer.Export(3), plain.Export(2));
  }
}

TEST(LinearAttentionTest, AStateGoesOnWhereItIsImported) {
  for (const LinearAttentionShape& shape : kShapes) {
    Layer layer(shape);
    const Values qkv = layer.Inputs(30, 7);
    layer.Sequence(layer.QkvRows(qkv, 0, 21), {{0, 21}});
    const std::vector<Values> state = layer.Export(0);
    Layer other(shape);
    other.Sequence(qkv, {{2, 30}});  // what the slot held is gone
    other.Import(2, state);
    EXPECT_EQ(other.Export(2), state);
    const Values rest = layer.QkvRows(qkv, 21, 9);
    EXPECT_EQ(other.Sequence(rest, {{2, 9}}), layer.Sequence(rest, {{0, 9}}));
    EXPECT_EQ(other.Export(2), layer.Export(0));
  }
}

// exp() of what a feature may be, at its ends and between: 2 units in the last place.
TEST(LinearAttentionTest, FeaturesArePositive) {
  const LinearAttentionShape shape = {.heads = 1, .head_dim = 1};
  Layer layer(shape);
  for (const float k : {-200.0f, -87.0f, -1.0f, -0.0f, 0.0f, 0x1p-20f, 1.0f, 1e20f}) {
    layer.state().Reset(0);
    layer.Step({0, k, 1}, {0});
    const double expected = reference::LinearAttentionFeature(k);
    EXPECT_NEAR(layer.Export(0)[1][0], expected, 4 * kUnitRoundoff * expected + 0x1p-125) << k;
  }
}

TEST(LinearAttentionSlotsTest, CopiesAndEmptiesSlots) {
  Layer layer(kShapes[1]);
  layer.Sequence(layer.Inputs(5, 8), {{1, 5}});
  ThreadPool pool(1);
  layer.state().Copy(pool, 1, 3);
  EXPECT_EQ(layer.Export(3), layer.Export(1));
  layer.state().Reset(1);
  EXPECT_EQ(layer.Export(1), layer.Export(0));
  EXPECT_NE(layer.Export(3), layer.Export(1));
  int64_t values = 0;
  for (const StateArray& array : layer.state().arrays()) values += array.values();
  EXPECT_GE(layer.state().bytes_per_slot(), values * static_cast<int64_t>(sizeof(float)));
}

}  // namespace
}  // namespace hippodrome::cpu::linear_attention_test
