#include "kernels/cpu/attention/dense_attention.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::dense_attention_causal_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  Problem(int64_t n_sequences, int64_t tokens, AttentionShape s, float scale = 1)
      : sequences(n_sequences),
        shape(s),
        rows(sequences * tokens),
        width(shape.heads * shape.head_dim),
        inv_freq(1, shape.rotary_dim / 2, 0, Frequencies()),
        qkv(rows, 3 * width, 3, RandomValues(rows * 3 * width, 1, scale)),
        d_o(rows, width, 2, 2) {}

  Values Frequencies() const {
    Values values;
    for (int64_t j = 0; j < shape.rotary_dim / 2; ++j) {
      values.push_back(static_cast<float>(std::pow(100.0, -double(j) / double(shape.rotary_dim))));
    }
    return values;
  }

  TwinMatrix Attend(int threads) const {
    ThreadPool pool(threads);
    TwinMatrix o(rows, width, 1, Values(size_t(rows * width), 99.0f));
    CausalAttention(pool, shape, qkv.actual(), inv_freq.actual(), sequences, dropout, o.actual());
    Reference().CausalAttention(shape, qkv.expected(), inv_freq.expected(), sequences, dropout,
                                o.expected());
    return o;
  }

  TwinMatrix Backward(int threads, bool add) const {
    ThreadPool pool(threads);
    TwinMatrix dqkv(rows, 3 * width, 5, 3);
    CausalAttentionBackward(pool, shape, qkv.actual(), inv_freq.actual(), sequences, dropout,
                            d_o.actual(), {dqkv.actual(), add});
    Reference().CausalAttentionBackward(shape, qkv.expected(), inv_freq.expected(), sequences,
                                        dropout, d_o.expected(), {dqkv.expected(), add});
    return dqkv;
  }

  int64_t sequences;
  AttentionShape shape;
  int64_t rows, width;
  TwinMatrix inv_freq, qkv, d_o;
  AttentionDropout dropout;
};

// Rounding errors of a sum of n terms grow as sqrt(n) u of the largest (Higham and Mary, 2019):
// those of products over a head's dimensions and of sums over tokens follow each other; 4 covers
// their number. Scores of size `scale`^2 sqrt(head_dim) pass their errors on through exponentials.
double Bound(const Problem& p, double scale = 1) {
  const double tokens = std::sqrt(double(p.rows / p.sequences));
  const double dims = std::sqrt(double(p.shape.head_dim));
  return 4 * (4 + tokens + scale * scale * dims) * kUnitRoundoff;
}

void ExpectForward(const Problem& p, double scale = 1) {
  const TwinMatrix o = p.Attend(2);
  EXPECT_LE(o.Error(), Bound(p, scale) * o.Magnitude())
      << p.rows / p.sequences << " tokens, head_dim " << p.shape.head_dim;
}

void ExpectBackward(const Problem& p, bool add, double scale = 1) {
  const TwinMatrix dqkv = p.Backward(2, add);
  for (int64_t part = 0; part < 3; ++part) {
    EXPECT_LE(dqkv.Error(part * p.width, p.width),
              Bound(p, scale) * dqkv.Magnitude(part * p.width, p.width))
        << "part " << part << ", " << p.rows / p.sequences << " tokens, head_dim "
        << p.shape.head_dim;
  }
}

TEST(CausalAttentionTest, MatchesTheFormulaForAllLengths) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 31, 64, 65, 128, 150, 260}) {
    ExpectForward(Problem(2, tokens, {.heads = 2, .head_dim = 8, .rotary_dim = 4}));
  }
}

TEST(CausalAttentionTest, MatchesTheFormulaForAllHeadSizes) {
  for (const int64_t head_dim : {1, 2, 5, 8, 17, 32, 33, 63, 64, 65, 80, 128}) {
    ExpectForward(
        Problem(2, 70, {.heads = 3, .head_dim = head_dim, .rotary_dim = head_dim / 4 * 2}));
  }
}

TEST(CausalAttentionTest, DropsWeightsAsTheFormulaDoes) {
  for (const int64_t tokens : {1, 15, 64, 65, 150}) {
    Problem p(2, tokens, {.heads = 2, .head_dim = 8, .rotary_dim = 4});
    p.dropout = {.p = 0.2, .seed = 0x123456789abcdefu};
    ExpectForward(p);
    ExpectBackward(p, tokens % 2);
  }
}

// A head of one sequence whose values are 1 gives the sum of the weights that were kept.
TEST(CausalAttentionTest, DropoutKeepsTheSumOfWeightsOnAverage) {
  Problem p(1, 200, {.heads = 1, .head_dim = 1});
  for (int64_t t = 0; t < p.rows; ++t) F32Row(p.qkv.actual(), t)[2] = 1;
  p.dropout = {.p = 0.5, .seed = 7};
  const std::vector<float> sums = p.Attend(1).values();
  // The weights of row t are about 1 / (t + 1): its sum has a deviation of about 0.09 here, and the
  // mean over these rows one of 0.009.
  double mean = 0;
  for (int64_t t = 100; t < p.rows; ++t) mean += sums[size_t(t)] / 100;
  EXPECT_NEAR(mean, 1, 0.05);
  EXPECT_NE(sums[150], 1);
}

TEST(CausalAttentionTest, LargeScoresDoNotOverflow) {
  const Problem p(1, 70, {.heads = 2, .head_dim = 16}, 30);
  ExpectForward(p, 30);
  ExpectBackward(p, false, 30);
}

TEST(CausalAttentionBackwardTest, MatchesTheFormulaForAllLengths) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 31, 64, 65, 128, 150, 260}) {
    ExpectBackward(Problem(2, tokens, {.heads = 2, .head_dim = 8, .rotary_dim = 4}), tokens % 2);
  }
}

TEST(CausalAttentionBackwardTest, MatchesTheFormulaForAllHeadSizes) {
  for (const int64_t head_dim : {1, 2, 5, 8, 17, 32, 33, 63, 64, 65, 80, 128}) {
    ExpectBackward(
        Problem(2, 70, {.heads = 3, .head_dim = head_dim, .rotary_dim = head_dim / 4 * 2}), false);
  }
}

// The difference quotient errs by about 1e-10 (step^2, and double rounding over the step).
TEST(CausalAttentionBackwardTest, MatchesDifferenceQuotientsOfTheForward) {
  const Problem p(2, 7, {.heads = 2, .head_dim = 5, .rotary_dim = 4});
  const TwinMatrix dqkv = p.Backward(1, false);
  const OwnedTensor o = Reference().NewTensor(p.rows, p.width);
  const auto forward = [&] {
    Reference().CausalAttention(p.shape, p.qkv.expected(), p.inv_freq.expected(), p.sequences,
                                p.dropout, o);
  };
  const double bound = Bound(p) * dqkv.Magnitude() + 1e-9;
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < 3 * p.width; ++c) {
      EXPECT_NEAR(F32Row(dqkv.actual(), r)[c],
                  CentralDifference(forward, p.qkv.expected(), o, p.d_o.expected(), r, c), bound);
    }
  }
}

TEST(CausalAttentionBackwardTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Problem p(3, 130, {.heads = 2, .head_dim = 24, .rotary_dim = 8});
  p.dropout = {.p = 0.1, .seed = 1};
  EXPECT_EQ(p.Attend(1).values(), p.Attend(3).values());
  EXPECT_EQ(p.Backward(1, true).values(), p.Backward(3, true).values());
}

TEST(CausalAttentionBackwardTest, AnEmptyGradientIsNotWanted) {
  const Problem p(1, 5, {.heads = 1, .head_dim = 4});
  ThreadPool pool(1);
  CausalAttentionBackward(pool, p.shape, p.qkv.actual(), {}, 1, {}, p.d_o.actual(), {});
}

}  // namespace
}  // namespace hippodrome::cpu::dense_attention_causal_test
