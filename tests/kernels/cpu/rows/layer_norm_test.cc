#include "kernels/cpu/rows/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::layer_norm_test {
namespace {

using Values = std::vector<float>;

constexpr double kEpsilon = 1e-5;

struct Problem {
  int64_t rows, cols;
  Values x, gamma, beta;
};

Problem MakeProblem(int64_t rows, int64_t cols, float shift = 0) {
  Problem p = {rows, cols, RandomValues(rows * cols, 1), RandomValues(cols, 2),
               RandomValues(cols, 3)};
  for (float& x : p.x) x += shift;
  return p;
}

Values Normalise(const Problem& p, int threads, int64_t gap) {
  ThreadPool pool(threads);
  const StridedMatrix x(p.rows, p.cols, gap, p.x);
  const StridedMatrix gamma(1, p.cols, gap, p.gamma);
  const StridedMatrix beta(1, p.cols, gap, p.beta);
  LayerNorm(pool, x.view(), gamma.view(), beta.view(), kEpsilon, x.view());  // in place
  return x.values();
}

// The mean errs by g(d) of the mean magnitude, and so does every centred value; the deviation errs
// by g(d) of itself; a few more roundings follow.
void ExpectNormalised(const Problem& p, const Values& y) {
  const double d = static_cast<double>(p.cols);
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* x = p.x.data() + r * p.cols;
    double mean = 0, size = 0, variance = 0;
    for (int64_t c = 0; c < p.cols; ++c) mean += x[c] / d;
    for (int64_t c = 0; c < p.cols; ++c) size += std::abs(x[c]) / d;
    for (int64_t c = 0; c < p.cols; ++c) variance += (x[c] - mean) * (x[c] - mean) / d;
    const double scale = 1 / std::sqrt(variance + kEpsilon);
    for (int64_t c = 0; c < p.cols; ++c) {
      const size_t i = static_cast<size_t>(c);
      const double v = (x[c] - mean) * scale * p.gamma[i];
      const double error = std::abs(p.gamma[i]) * Gamma(p.cols + 4) * (size + std::abs(x[c])) *
                               scale * (1 + std::abs(v)) +
                           Gamma(p.cols + 8) * (std::abs(v) + std::abs(p.beta[i]));
      ASSERT_NEAR(y[static_cast<size_t>(r * p.cols + c)], v + p.beta[i], error)
          << "row " << r << " column " << c << " of " << p.cols;
    }
  }
}

TEST(LayerNormTest, MatchesTheFormula) {
  for (int64_t cols : {1, 2, 15, 16, 17, 63, 64, 65, 129, 768, 1000}) {
    for (float shift : {0.0f, 30.0f}) {
      const Problem p = MakeProblem(5, cols, shift);
      ExpectNormalised(p, Normalise(p, 2, 3));
    }
  }
}

TEST(LayerNormTest, RowsAreIndependentBitForBit) {
  const Problem all = MakeProblem(67, 301);
  const Values expected = Normalise(all, 1, 0);
  for (int64_t rows = 1; rows <= all.rows; ++rows) {
    Problem last = all;
    last.rows = rows;
    last.x.erase(last.x.begin(), last.x.begin() + (all.rows - rows) * all.cols);
    EXPECT_EQ(Normalise(last, 3, 5),
              Values(expected.begin() + (all.rows - rows) * all.cols, expected.end()));
  }
}

TEST(LayerNormTest, AConstantRowGivesBeta) {
  Problem p = MakeProblem(1, 37);
  p.x.assign(37, 0.5f);
  EXPECT_EQ(Normalise(p, 1, 0), p.beta);
}

struct BackwardProblem {
  BackwardProblem(int64_t rows, int64_t cols)
      : x(rows, cols, 3, 1), gamma(1, cols, 1, 2), dy(rows, cols, 2, 3) {}

  TwinMatrix x, gamma, dy;
};

struct BackwardResult {
  BackwardResult(int64_t rows, int64_t cols)
      : dx(rows, cols, 5, 4), dgamma(1, cols, 1, 5), dbeta(1, cols, 1, 6) {}

  TwinMatrix dx, dgamma, dbeta;
};

BackwardResult Backward(const BackwardProblem& p, int threads, bool add) {
  ThreadPool pool(threads);
  BackwardResult out(p.x.actual().rows, p.x.actual().cols);
  LayerNormBackward(pool, p.x.actual(), p.gamma.actual(), kEpsilon, p.dy.actual(),
                    {out.dx.actual(), add}, out.dgamma.actual(), out.dbeta.actual());
  Reference().LayerNormBackward(p.x.expected(), p.gamma.expected(), kEpsilon, p.dy.expected(),
                                {out.dx.expected(), add}, out.dgamma.expected(),
                                out.dbeta.expected());
  return out;
}

// Elements of dx err by the d-term sums of their row, relative to dy gamma / deviation, which is
// what the largest of many rows is about; xhat is up to sqrt(3), more for a few columns. dgamma and
// dbeta are sums over rows of xhat dy and dy.
TEST(LayerNormBackwardTest, MatchesTheFormula) {
  for (const int64_t cols : {2, 15, 16, 17, 64, 65, 256, 1000}) {
    for (const int64_t rows : {1, 5, 64, 65, 200}) {
      for (const bool add : {false, true}) {
        const BackwardProblem p(rows, cols);
        const BackwardResult out = Backward(p, 2, add);
        const std::string where = std::to_string(rows) + " x " + std::to_string(cols);
        // Two columns cancel to epsilon / variance of their terms.
        const double dx = cols == 2 ? 1 / std::sqrt(kEpsilon) : std::max(5.0, out.dx.Magnitude());
        EXPECT_LE(out.dx.Error(), 4 * Gamma(cols + 8) * dx) << where;
        EXPECT_LE(out.dgamma.Error(), Gamma(rows + cols + 8) * (1 + 3 * double(rows))) << where;
        EXPECT_LE(out.dbeta.Error(), Gamma(rows + 1) * double(rows + 1)) << where;
      }
    }
  }
}

TEST(LayerNormBackwardTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const BackwardProblem p(1000, 50);
  const BackwardResult one = Backward(p, 1, false);
  const BackwardResult three = Backward(p, 3, false);
  EXPECT_EQ(one.dx.values(), three.dx.values());
  EXPECT_EQ(one.dgamma.values(), three.dgamma.values());
  EXPECT_EQ(one.dbeta.values(), three.dbeta.values());
}

TEST(LayerNormBackwardTest, ReplacesDyAndLeavesOutWhatIsNotWanted) {
  const BackwardProblem p(70, 33);
  const BackwardResult expected = Backward(p, 1, false);
  ThreadPool pool(2);
  const TwinMatrix dbeta(1, 33, 1, 6);
  LayerNormBackward(pool, p.x.actual(), p.gamma.actual(), kEpsilon, p.dy.actual(), {}, {},
                    dbeta.actual());
  EXPECT_EQ(dbeta.values(), expected.dbeta.values());
  LayerNormBackward(pool, p.x.actual(), p.gamma.actual(), kEpsilon, p.dy.actual(), {p.dy.actual()},
                    {}, {});
  EXPECT_EQ(p.dy.values(), expected.dx.values());
}

// The difference quotient errs by about 1e-9: third derivatives times step^2.
TEST(LayerNormBackwardTest, MatchesDifferenceQuotientsOfTheForward) {
  const BackwardProblem p(3, 7);
  const BackwardResult out = Backward(p, 1, false);
  const OwnedTensor y = Reference().NewTensor(3, 7);
  const OwnedTensor beta = Reference().NewTensor(1, 7);
  const auto forward = [&] {
    Reference().LayerNorm(p.x.expected(), p.gamma.expected(), beta, kEpsilon, y);
  };
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 7; ++c) {
      EXPECT_NEAR(F32Row(out.dx.actual(), r)[c],
                  CentralDifference(forward, p.x.expected(), y, p.dy.expected(), r, c),
                  8 * Gamma(16) * std::max(1.0, out.dx.Magnitude()) + 1e-8);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::layer_norm_test
