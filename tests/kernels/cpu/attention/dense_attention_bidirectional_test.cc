#include "kernels/cpu/attention/dense_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::dense_attention_bidirectional_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  Problem(int64_t n_sequences, int64_t n_tokens, int64_t heads, int64_t head_dim)
      : sequences(n_sequences),
        tokens(n_tokens),
        shape{.heads = heads, .head_dim = head_dim},
        qkv(RandomValues(sequences * tokens * 3 * width(), 1)) {
    for (const float value : RandomValues(sequences * tokens, 2)) mask.push_back(value > -0.3f);
  }

  int64_t width() const { return shape.heads * shape.head_dim; }

  Values Attend(int threads = 2) const {
    ThreadPool pool(threads);
    const OwnedTensor masks = NewMatrix(sequences, tokens, DType::kI32);
    CopyIn(mask, masks.view);
    const StridedMatrix in(sequences * tokens, 3 * width(), 3, qkv);
    const StridedMatrix out(sequences * tokens, width(), 1);
    BidirectionalAttention(pool, shape, in.view(), masks, out.view());
    return out.values();
  }

  // Element `i` of part `part` (0 q, 1 k, 2 v) of one head of a row.
  double At(int64_t row, int64_t part, int64_t head, int64_t i) const {
    return qkv[size_t((row * 3 + part) * width() + head * shape.head_dim + i)];
  }

  int64_t sequences, tokens;
  AttentionShape shape;
  Values qkv;
  std::vector<int32_t> mask;
};

// softmax_s(q_row . k_s / sqrt(head_dim)) over the unmasked tokens of the row's sequence, else 0.
std::vector<double> Weights(const Problem& p, int64_t row, int64_t head) {
  const int64_t first = row / p.tokens * p.tokens;
  std::vector<double> weights(size_t(p.tokens), 0.0);
  double total = 0;
  for (int64_t s = 0; s < p.tokens; ++s) {
    if (p.mask[size_t(first + s)] == 0) continue;
    double score = 0;
    for (int64_t i = 0; i < p.shape.head_dim; ++i) {
      score += p.At(row, 0, head, i) * p.At(first + s, 1, head, i);
    }
    weights[size_t(s)] = std::exp(score / std::sqrt(double(p.shape.head_dim)));
    total += weights[size_t(s)];
  }
  for (double& weight : weights) weight = total == 0 ? 0 : weight / total;
  return weights;
}

// A score errs by g(head_dim + 2) of its terms' magnitude, below sqrt(head_dim), and its
// exponential with it; sums of T terms below 1 follow, twice.
void ExpectAttention(const Problem& p) {
  const Values y = p.Attend();
  const double n = double(p.shape.head_dim);
  const double bound = 2 * Gamma(p.shape.head_dim + 8) * std::sqrt(n) + 2 * Gamma(p.tokens + 20);
  for (int64_t row = 0; row < p.sequences * p.tokens; ++row) {
    const int64_t first = row / p.tokens * p.tokens;
    for (int64_t head = 0; head < p.shape.heads; ++head) {
      const std::vector<double> weights = Weights(p, row, head);
      for (int64_t i = 0; i < p.shape.head_dim; ++i) {
        double sum = 0;
        for (int64_t s = 0; s < p.tokens; ++s) {
          sum += weights[size_t(s)] * p.At(first + s, 2, head, i);
        }
        ASSERT_NEAR(y[size_t(row * p.width() + head * p.shape.head_dim + i)], sum, bound)
            << "row " << row << " head " << head;
      }
    }
  }
}

TEST(BidirectionalAttentionTest, IsTheSoftmaxOverUnmaskedTokens) {
  for (const int64_t tokens : {1, 9, 64, 65, 150}) ExpectAttention(Problem(2, tokens, 3, 16));
  for (const int64_t head_dim : {1, 5, 33, 64, 130}) ExpectAttention(Problem(2, 20, 2, head_dim));
}

TEST(BidirectionalAttentionTest, WithoutUnmaskedTokensRowsAreZero) {
  Problem p(2, 6, 2, 8);
  std::fill(p.mask.begin(), p.mask.begin() + 6, 0);
  p.mask[6] = 1;
  const Values y = p.Attend();
  EXPECT_EQ(Values(y.begin(), y.begin() + 6 * 16), Values(6 * 16, 0.0f));
  ExpectAttention(p);
}

TEST(BidirectionalAttentionTest, ASequenceIsTheSameBesideOthersAndOnAnyNumberOfThreads) {
  const Problem all(3, 70, 2, 24);
  const Values expected = all.Attend(1);
  EXPECT_EQ(all.Attend(3), expected);
  const int64_t in = all.tokens * 3 * all.width();
  const int64_t out = all.tokens * all.width();
  for (int64_t b = 0; b < all.sequences; ++b) {
    Problem one = all;
    one.sequences = 1;
    one.qkv = Values(all.qkv.begin() + b * in, all.qkv.begin() + (b + 1) * in);
    one.mask = {all.mask.begin() + b * all.tokens, all.mask.begin() + (b + 1) * all.tokens};
    EXPECT_EQ(one.Attend(), Values(expected.begin() + b * out, expected.begin() + (b + 1) * out));
  }
}

TwinMatrix Backward(const Problem& p, int threads, bool add) {
  ThreadPool pool(threads);
  const int64_t rows = p.sequences * p.tokens;
  const OwnedTensor mask = NewMatrix(p.sequences, p.tokens, DType::kI32);
  CopyIn(p.mask, mask.view);
  const TwinMatrix qkv(rows, 3 * p.width(), 3, p.qkv);
  const TwinMatrix d_o(rows, p.width(), 2, 3);
  TwinMatrix dqkv(rows, 3 * p.width(), 1, 4);
  BidirectionalAttentionBackward(pool, p.shape, qkv.actual(), mask, d_o.actual(),
                                 {dqkv.actual(), add});
  Reference().BidirectionalAttentionBackward(p.shape, qkv.expected(), mask, d_o.expected(),
                                             {dqkv.expected(), add});
  return dqkv;
}

// As for causal attention: sums over a head's dimensions and over tokens follow each other, each
// with an error of sqrt(n) u of its largest terms.
void ExpectBackward(const Problem& p, bool add) {
  const TwinMatrix dqkv = Backward(p, 2, add);
  const double roots = std::sqrt(double(p.tokens)) + std::sqrt(double(p.shape.head_dim));
  for (int64_t part = 0; part < 3; ++part) {
    EXPECT_LE(dqkv.Error(part * p.width(), p.width()),
              4 * (4 + roots) * kUnitRoundoff * dqkv.Magnitude(part * p.width(), p.width()))
        << "part " << part << ", " << p.tokens << " tokens, head_dim " << p.shape.head_dim;
  }
}

TEST(BidirectionalAttentionBackwardTest, MatchesTheFormula) {
  for (const int64_t tokens : {1, 9, 31, 64, 100, 150, 260}) {
    ExpectBackward(Problem(2, tokens, 3, 16), tokens % 2 == 0);
  }
  for (const int64_t head_dim : {1, 5, 33, 64, 130}) {
    ExpectBackward(Problem(2, 40, 2, head_dim), false);
  }
}

TEST(BidirectionalAttentionBackwardTest, WithoutUnmaskedTokensGradientsAreZero) {
  Problem p(2, 6, 2, 8);
  std::fill(p.mask.begin(), p.mask.begin() + 6, 0);
  p.mask[6] = 1;
  const Values dqkv = Backward(p, 1, false).values();
  EXPECT_EQ(Values(dqkv.begin(), dqkv.begin() + 6 * 48), Values(6 * 48, 0.0f));
  ExpectBackward(p, false);
  ExpectBackward(p, true);
}

TEST(BidirectionalAttentionBackwardTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Problem p(3, 70, 2, 24);
  EXPECT_EQ(Backward(p, 1, true).values(), Backward(p, 3, true).values());
}

// The difference quotient errs by about 1e-10 (step^2, and double rounding over the step).
TEST(BidirectionalAttentionBackwardTest, MatchesDifferenceQuotientsOfTheForward) {
  const Problem p(2, 6, 2, 3);
  const int64_t rows = p.sequences * p.tokens;
  const TwinMatrix dqkv = Backward(p, 1, false);
  const OwnedTensor mask = NewMatrix(p.sequences, p.tokens, DType::kI32);
  CopyIn(p.mask, mask.view);
  const TwinMatrix qkv(rows, 3 * p.width(), 3, p.qkv);
  const TwinMatrix d_o(rows, p.width(), 2, 3);
  const OwnedTensor o = Reference().NewTensor(rows, p.width());
  const auto forward = [&] {
    Reference().BidirectionalAttention(p.shape, qkv.expected(), mask, o);
  };
  const double bound = 40 * kUnitRoundoff * dqkv.Magnitude() + 1e-9;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 3 * p.width(); ++c) {
      EXPECT_NEAR(F32Row(dqkv.actual(), r)[c],
                  CentralDifference(forward, qkv.expected(), o, d_o.expected(), r, c), bound);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::dense_attention_bidirectional_test
