#include "kernels/cpu/rows/mean_pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::mean_pool_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  Problem(int64_t n_sequences, int64_t n_tokens, int64_t n_width)
      : sequences(n_sequences),
        tokens(n_tokens),
        width(n_width),
        x(RandomValues(sequences * tokens * width, 1)) {
    for (const float value : RandomValues(sequences * tokens, 2)) mask.push_back(value > -0.3f);
  }

  Values Pool(int threads) const {
    ThreadPool pool(threads);
    const OwnedTensor masks = NewMatrix(sequences, tokens, DType::kI32);
    CopyIn(mask, masks.view);
    const StridedMatrix in(sequences * tokens, width, 3, x);
    const StridedMatrix out(sequences, width, 1, Values(size_t(sequences * width), 99.0f));
    MeanPool(pool, in.view(), masks, out.view());
    return out.values();
  }

  int64_t sequences, tokens, width;
  Values x;
  std::vector<int32_t> mask;
};

// The bound of the contract: g(T) of the mean magnitude, T - 1 additions and a division.
void ExpectMeans(const Problem& p) {
  const Values y = p.Pool(2);
  for (int64_t b = 0; b < p.sequences; ++b) {
    for (int64_t c = 0; c < p.width; ++c) {
      double sum = 0, magnitude = 0, count = 0;
      for (int64_t t = b * p.tokens; t < (b + 1) * p.tokens; ++t) {
        if (p.mask[size_t(t)] == 0) continue;
        const double x = p.x[size_t(t * p.width + c)];
        sum += x;
        magnitude += std::abs(x);
        count += 1;
      }
      const double expected = count == 0 ? 0 : sum / count;
      const double bound = count == 0 ? 0 : Gamma(p.tokens) * magnitude / count;
      ASSERT_NEAR(y[size_t(b * p.width + c)], expected, bound) << b << ", " << c;
    }
  }
}

TEST(MeanPoolTest, IsTheMeanOfUnmaskedRows) {
  for (const int64_t tokens : {1, 2, 9, 300}) {
    for (const int64_t width : {1, 48, 1024}) ExpectMeans(Problem(3, tokens, width));
  }
}

TEST(MeanPoolTest, ASequenceWithoutUnmaskedRowsIsZero) {
  Problem p(2, 5, 7);
  p.mask = {0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
  const Values y = p.Pool(1);
  EXPECT_EQ(Values(y.begin(), y.begin() + 7), Values(7, 0.0f));
  EXPECT_EQ(Values(y.begin() + 7, y.end()), Values(p.x.begin() + 6 * 7, p.x.begin() + 7 * 7));
}

TEST(MeanPoolTest, ASequenceIsTheSameBesideOthers) {
  const Problem all(4, 30, 20);
  const Values expected = all.Pool(3);
  for (int64_t b = 0; b < 4; ++b) {
    Problem one(1, 30, 20);
    one.x = Values(all.x.begin() + b * 600, all.x.begin() + (b + 1) * 600);
    one.mask = {all.mask.begin() + b * 30, all.mask.begin() + (b + 1) * 30};
    EXPECT_EQ(one.Pool(1), Values(expected.begin() + b * 20, expected.begin() + (b + 1) * 20));
  }
}

// A division and, if added, an addition.
void ExpectGradients(const Problem& p, bool add) {
  ThreadPool pool(2);
  const OwnedTensor mask = NewMatrix(p.sequences, p.tokens, DType::kI32);
  CopyIn(p.mask, mask.view);
  const TwinMatrix dy(p.sequences, p.width, 2, 3);
  const TwinMatrix dx(p.sequences * p.tokens, p.width, 1, 4);
  MeanPoolBackward(pool, mask, dy.actual(), {dx.actual(), add});
  Reference().MeanPoolBackward(mask, dy.expected(), {dx.expected(), add});
  EXPECT_LE(dx.Error(), Gamma(2) * 2);
}

TEST(MeanPoolBackwardTest, SpreadsOverUnmaskedRows) {
  for (const bool add : {false, true}) {
    for (const int64_t tokens : {1, 9, 300}) ExpectGradients(Problem(3, tokens, 48), add);
    Problem masked(2, 5, 7);
    masked.mask = {0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
    ExpectGradients(masked, add);
  }
}

}  // namespace
}  // namespace hippodrome::cpu::mean_pool_test
