#include "kernels/cpu/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu {
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

}  // namespace
}  // namespace hippodrome::cpu
