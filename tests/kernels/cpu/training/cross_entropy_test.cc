#include "kernels/cpu/training/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/gemm/linear_kernels.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::cross_entropy_test {
namespace {

using Values = std::vector<float>;

constexpr double kBF16Roundoff = 0x1p-8;

struct Problem {
  int64_t rows, in, vocab;
  double scale;
  Values x, w, bias;
  std::vector<int32_t> labels;
};

Problem MakeProblem(int64_t rows, int64_t in, int64_t vocab, double scale) {
  Problem p = {rows,
               in,
               vocab,
               scale,
               RandomValues(rows * in, 1, 2),
               RandomValues(vocab * in, 2, 2),
               RandomValues(vocab, 3),
               {}};
  for (int64_t r = 0; r < rows; ++r) {
    p.labels.push_back(r % 5 == 3 ? -1 : static_cast<int32_t>(r * 7919 % vocab));
  }
  return p;
}

struct Results {
  Values losses, dx, dw, dbias;
  bool operator==(const Results&) const = default;
};

Results Compute(ThreadPool& pool, const Problem& p, DType dtype, DotKernel kernel,
                bool wants_gradients = true, int64_t gap = 0) {
  const StridedMatrix w(p.vocab, p.in, gap, p.w);
  TrainedWeights weights(p.vocab, p.in, dtype);
  PackTrainedLinear(pool, std::vector<Tensor>{w.view()}, weights);
  const StridedMatrix x(p.rows, p.in, gap, p.x);
  const StridedMatrix bias(1, p.vocab, 0, p.bias);
  const OwnedTensor labels = NewMatrix(1, p.rows, DType::kI32);
  CopyIn(p.labels, labels);
  const StridedMatrix losses(1, p.rows, 0);
  const StridedMatrix dx(p.rows, p.in, gap);
  const StridedMatrix dw(p.vocab, p.in, gap);
  const StridedMatrix dbias(1, p.vocab, 0);
  const LinearGradients gradients = {.x = {dx.view()}, .weights = dw.view(), .bias = dbias.view()};
  LinearCrossEntropy(pool, x.view(), weights, bias.view(), labels, p.scale, losses.view(),
                     wants_gradients ? &gradients : nullptr, kernel);
  return {losses.values(), dx.values(), dw.values(), dbias.values()};
}

// A row in double: the loss, scale (p - e_label), and bounds of the errors of the computed ones.
struct Row {
  double loss = 0;
  double loss_error = 0;
  std::vector<double> gradient;
  std::vector<double> gradient_error;
};

double Rounded(DType dtype, float x) { return dtype == DType::kBF16 ? ToFloat(ToBF16(x)) : x; }

Row ExpectedRow(const Problem& p, DType dtype, int64_t r) {
  const auto vocab = static_cast<size_t>(p.vocab);
  Row row = {.gradient = std::vector<double>(vocab), .gradient_error = std::vector<double>(vocab)};
  const int32_t label = p.labels[static_cast<size_t>(r)];
  if (label < 0) return row;
  std::vector<double> z(vocab);
  double z_error = 0;
  for (size_t v = 0; v < vocab; ++v) {
    double magnitude = std::abs(p.bias[v]);
    z[v] = p.bias[v];
    for (int64_t i = 0; i < p.in; ++i) {
      const double product =
          Rounded(dtype, p.x[static_cast<size_t>(r * p.in + i)]) *
          Rounded(dtype, p.w[v * static_cast<size_t>(p.in) + static_cast<size_t>(i)]);
      z[v] += product;
      magnitude += std::abs(product);
    }
    z_error = std::max(z_error, Gamma(p.in + 3) * magnitude);
  }
  const double largest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (double value : z) sum += std::exp(value - largest);
  row.loss = std::log(sum) + largest - z[static_cast<size_t>(label)];
  // exp errs by 2 ulp and by the rounding of its argument; sums add a rounding for each term.
  const double range = largest - *std::min_element(z.begin(), z.end());
  const double relative = 2 * z_error + kUnitRoundoff * (range + 8) + Gamma(p.vocab);
  row.loss_error = 2 * relative + kUnitRoundoff * std::abs(row.loss);
  for (size_t v = 0; v < vocab; ++v) {
    const double probability = std::exp(z[v] - largest) / sum;
    const double target = v == static_cast<size_t>(label) ? 1 : 0;
    row.gradient[v] = p.scale * (probability - target);
    row.gradient_error[v] =
        std::abs(p.scale) * (2 * relative * probability + 4 * kUnitRoundoff * target);
    if (dtype == DType::kBF16) row.gradient_error[v] += kBF16Roundoff * std::abs(row.gradient[v]);
  }
  return row;
}

void ExpectResults(const Problem& p, DType dtype, const Results& results) {
  const auto in = static_cast<size_t>(p.in);
  const auto vocab = static_cast<size_t>(p.vocab);
  std::vector<double> dw(vocab * in), dw_error(vocab * in), dbias(vocab), dbias_error(vocab);
  for (size_t r = 0; r < static_cast<size_t>(p.rows); ++r) {
    const Row row = ExpectedRow(p, dtype, static_cast<int64_t>(r));
    ASSERT_NEAR(results.losses[r], row.loss, row.loss_error) << r;
    std::vector<double> dx(in), dx_error(in);
    for (size_t v = 0; v < vocab; ++v) {
      const double g = row.gradient[v];
      const double g_error = row.gradient_error[v] + Gamma(p.vocab + p.rows + 4) * std::abs(g);
      dbias[v] += g;
      dbias_error[v] += g_error;
      for (size_t i = 0; i < in; ++i) {
        const double weight = Rounded(dtype, p.w[v * in + i]);
        dx[i] += g * weight;
        dx_error[i] += g_error * std::abs(weight);
        const double input = Rounded(dtype, p.x[r * in + i]);
        dw[v * in + i] += g * input;
        dw_error[v * in + i] += g_error * std::abs(input);
      }
    }
    for (size_t i = 0; i < in; ++i) {
      ASSERT_NEAR(results.dx[r * in + i], dx[i], dx_error[i] + 1e-30) << r << ", " << i;
    }
  }
  for (size_t v = 0; v < vocab; ++v) {
    ASSERT_NEAR(results.dbias[v], dbias[v], dbias_error[v] + 1e-30) << v;
    for (size_t i = 0; i < in; ++i) {
      ASSERT_NEAR(results.dw[v * in + i], dw[v * in + i], dw_error[v * in + i] + 1e-30) << v;
    }
  }
}

using CrossEntropyTest = LinearKernelTest;

INSTANTIATE_TEST_SUITE_P(Kernels, CrossEntropyTest, AllLinearKernels());

TEST_P(CrossEntropyTest, MatchesDoubleLoops) {
  ThreadPool pool(2);
  for (int64_t rows : {1, 6, 35}) {
    for (auto [in, vocab] : {std::pair{1, 1}, {3, 2}, {16, 64}, {33, 131}, {7, 1003}}) {
      const Problem p = MakeProblem(rows, in, vocab, 0.25);
      ExpectResults(p, dtype(), Compute(pool, p, dtype(), kernel()));
    }
  }
}

TEST_P(CrossEntropyTest, MatchesDoubleLoopsBeyondOneBlockOfRows) {
  ThreadPool pool(2);
  const Problem many = MakeProblem(1100, 8, 10, 1.0 / 880);
  ExpectResults(many, dtype(), Compute(pool, many, dtype(), kernel()));
  const Problem wide = MakeProblem(300, 3, 20000, 1.0 / 240);
  ExpectResults(wide, dtype(), Compute(pool, wide, dtype(), kernel()));
}

TEST_P(CrossEntropyTest, SurvivesLargeLogits) {
  ThreadPool pool(2);
  Problem p = MakeProblem(20, 8, 50, 1);
  for (float& value : p.x) value *= 1e4f;
  const Results results = Compute(pool, p, dtype(), kernel());
  for (float loss : results.losses) EXPECT_TRUE(loss >= 0 && loss < 1e6f) << loss;
  for (float value : results.dx) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(CrossEntropyTest, GivesTheSameLossesWithoutGradients) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(50, 20, 300, 1);
  const Results losses_only = Compute(pool, p, dtype(), kernel(), false);
  EXPECT_EQ(losses_only.losses, Compute(pool, p, dtype(), kernel()).losses);
  EXPECT_EQ(losses_only.dw, Values(losses_only.dw.size()));
}

TEST_P(CrossEntropyTest, RepeatsBitForBitOnManyThreadsAndStrides) {
  ThreadPool one(1);
  ThreadPool three(3);
  const Problem p = MakeProblem(700, 40, 3100, 1);
  EXPECT_TRUE(Compute(one, p, dtype(), kernel()) == Compute(three, p, dtype(), kernel(), true, 3));
}

}  // namespace
}  // namespace hippodrome::cpu::cross_entropy_test
