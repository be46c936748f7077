#include "kernels/cpu/h3/h3_convolution.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/h3/h3_gradient_problem.h"

namespace hippodrome::cpu::h3_convolution_test {
namespace {

using Values = std::vector<float>;

// Of the error bounds; about twice the largest error seen.
constexpr double kConstant = 0.5;

double Roundoff(int64_t steps) { return kUnitRoundoff * (6 + std::log2(double(steps))); }

struct Results {
  Values o, dqkv, dtaps, dk;
};

// A layer and some sequences of random activations.
struct Problem {
  Problem(const H3Shape& shape, int64_t tokens, int64_t sequence_count, int64_t longest = 0,
          int threads = 2)
      : pool(threads),
        layer(shape),
        weights(pool, layer.parameters(), longest == 0 ? tokens : longest),
        sums(weights.layout()),
        d(shape.d_model),
        steps(tokens),
        sequences(sequence_count),
        rows(tokens * sequence_count),
        qkv(RandomValues(rows * 3 * d, 7)),
        d_o(RandomValues(rows * d, 8)) {}

  Results Run(int64_t gap = 0) {
    Results results;
    const StridedMatrix x(rows, 3 * d, gap, qkv);
    const StridedMatrix o(rows, d, gap);
    const StridedMatrix dy(rows, d, gap, d_o);
    const StridedMatrix dx(rows, 3 * d, gap, Values(qkv.size(), 99.0f));
    H3Convolution(pool, plans, weights, x.view(), sequences, o.view());
    H3ConvolutionBackward(pool, plans, weights, x.view(), sequences, dy.view(), {dx.view(), false},
                          sums);
    return {o.values(), dx.values(), sums.Taps(), sums.Kernels()};
  }

  ThreadPool pool;
  FftPlans plans;
  RandomH3 layer;
  H3ConvolutionKernels weights;
  H3KernelGradients sums;
  int64_t d;
  int64_t steps;
  int64_t sequences;
  int64_t rows;
  Values qkv;
  Values d_o;
};

// Row-major `values` [.., cols], or [rows, cols] with a scale for each row.
void ExpectNear(const char* name, const Values& values, const std::vector<double>& expected,
                const std::vector<double>& scale, int64_t steps, bool scale_of_row) {
  ASSERT_EQ(values.size(), expected.size()) << name;
  const size_t cols = scale_of_row ? values.size() / scale.size() : 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const double allowed = Roundoff(steps) * scale[i / cols % scale.size()] + 1e-30;
    ASSERT_NEAR(values[i], expected[i], kConstant * allowed) << name << " element " << i;
  }
}

void ExpectGradients(const H3Shape& shape, int64_t steps, int64_t sequences, int64_t gap = 0,
                     int64_t longest = 0) {
  Problem p(shape, steps, sequences, longest);
  const Results results = p.Run(gap);
  const H3GradientSums sums(p.layer.parameters(), p.qkv, p.d_o, sequences);
  const H3GradientExpectation& e = sums.expectation();
  ExpectNear("o", results.o, e.o, e.o_scale, steps, false);
  ExpectNear("dqkv", results.dqkv, e.dqkv, e.dqkv_scale, steps, false);
  ExpectNear("dtaps", results.dtaps, e.dtaps, e.dtaps_scale, steps, true);
  Values dk;  // of the first `steps` taps
  const int64_t length = p.weights.layout().longest;
  for (size_t i = 0; i < results.dk.size(); ++i) {
    if (static_cast<int64_t>(i) % length < steps) {
      dk.push_back(results.dk[i]);
    } else {
      ASSERT_EQ(results.dk[i], 0);
    }
  }
  ExpectNear("dk", dk, e.dk, e.dk_scale, steps, true);
}

TEST(H3ConvolutionTest, EveryLength) {
  for (const int64_t steps :
       {1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 511, 512, 513, 1100}) {
    SCOPED_TRACE(steps);
    ExpectGradients({.d_model = 16}, steps, 2);
  }
}

TEST(H3ConvolutionTest, ThousandsOfTokens) { ExpectGradients({.d_model = 3}, 5000, 1); }

TEST(H3ConvolutionTest, EveryShape) {
  for (const int64_t steps : {5, 70, 300}) {
    SCOPED_TRACE(steps);
    for (const int64_t d : {1, 5, 33}) ExpectGradients({.d_model = d}, steps, 3);
    for (const int64_t d_state : {2, 6, 20, 128}) {
      SCOPED_TRACE(d_state);
      ExpectGradients({.d_model = 17, .d_state = d_state}, steps, 2);
    }
    ExpectGradients({.d_model = 40, .n_ssm = 4}, steps, 1);
    ExpectGradients({.d_model = 20, .discretization = Discretization::kZoh}, steps, 1);
  }
}

TEST(H3ConvolutionTest, EveryHeadDimension) {
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] :
         {std::pair{16, 2}, {20, 4}, {24, 8}, {33, 3}, {16, 16}, {40, 20}, {17, 17}, {15, 5}}) {
      SCOPED_TRACE(head_dim);
      const H3Shape shape = {
          .d_model = d, .head_dim = head_dim, .d_state = 8, .output_order = order};
      ExpectGradients(shape, 9, 2);
      ExpectGradients(shape, 90, 2);
    }
  }
}

TEST(H3ConvolutionTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3, 16}) {
    ExpectGradients({.d_model = 37}, 130, 2, gap);
    ExpectGradients({.d_model = 16}, 33, 2, gap);
    ExpectGradients({.d_model = 12, .head_dim = 2}, 30, 2, gap);
  }
}

TEST(H3ConvolutionTest, ManySequences) {
  ExpectGradients({.d_model = 16, .d_state = 8}, 20, 21);
  ExpectGradients({.d_model = 16, .d_state = 8}, 80, 21);
}

TEST(H3ConvolutionTest, ShorterThanTheLongest) {
  ExpectGradients({.d_model = 16}, 30, 2, 0, 500);
  ExpectGradients({.d_model = 16}, 100, 2, 0, 500);
  ExpectGradients({.d_model = 6, .head_dim = 2, .d_state = 8}, 100, 2, 0, 101);
}

TEST(H3ConvolutionTest, AddsToGradientsAndSums) {
  for (const int64_t steps : {20, 100}) {
    Problem p({.d_model = 17, .d_state = 8}, steps, 2);
    const Results once = p.Run();
    const StridedMatrix x(p.rows, 3 * p.d, 0, p.qkv);
    const StridedMatrix dy(p.rows, p.d, 0, p.d_o);
    const StridedMatrix dx(p.rows, 3 * p.d, 0, Values(p.qkv.size(), 2.0f));
    H3ConvolutionBackward(p.pool, p.plans, p.weights, x.view(), 2, dy.view(), {dx.view(), true},
                          p.sums);
    H3ConvolutionBackward(p.pool, p.plans, p.weights, x.view(), 2, dy.view(), {}, p.sums);
    const Values added = dx.values();
    for (size_t i = 0; i < added.size(); ++i) ASSERT_EQ(added[i], 2.0f + once.dqkv[i]);
    const Values taps = p.sums.Taps();
    for (size_t i = 0; i < taps.size(); ++i) {
      ASSERT_EQ(taps[i], once.dtaps[i] + once.dtaps[i] + once.dtaps[i]);
    }
    p.sums.Zero();
    for (const float value : p.sums.Kernels()) ASSERT_EQ(value, 0);
  }
}

TEST(H3ConvolutionTest, RepeatsBitForBitOnManyThreads) {
  for (const int64_t steps : {40, 150}) {
    Problem one({.d_model = 50}, steps, 20, 0, 1);
    Problem three({.d_model = 50}, steps, 20, 0, 3);
    const Results a = one.Run();
    const Results b = three.Run();
    EXPECT_EQ(a.o, b.o);
    EXPECT_EQ(a.dqkv, b.dqkv);
    EXPECT_EQ(a.dtaps, b.dtaps);
    EXPECT_EQ(a.dk, b.dk);
  }
}

TEST(H3ConvolutionTest, NothingToDo) {
  Problem p({.d_model = 4}, 3, 0);
  const Results results = p.Run();
  for (const float value : results.dk) ASSERT_EQ(value, 0);
}

}  // namespace
}  // namespace hippodrome::cpu::h3_convolution_test
