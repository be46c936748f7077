#include "kernels/cpu/gemm/linear_backward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/activations.h"
#include "tests/kernels/cpu/gemm/linear_kernels.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::linear_backward_test {
namespace {

using Values = std::vector<float>;
using Activation = Epilogue::Activation;

constexpr double kBF16Roundoff = 0x1p-8;  // nearest of 8 bits, relative: 2^-9 of the upper binade

struct Problem {
  int64_t rows, in, out;
  Activation activation;
  bool gated;
  bool add;  // to dx and dgate
  Values x, w, bias, gate, dy;
  // What is there before.
  Values dx, dw, dbias, dgate;
};

Problem MakeProblem(int64_t rows, int64_t in, int64_t out, Activation activation, bool gated,
                    bool add) {
  const float scale = 1 / std::sqrt(static_cast<float>(in));
  return {.rows = rows,
          .in = in,
          .out = out,
          .activation = activation,
          .gated = gated,
          .add = add,
          .x = RandomValues(rows * in, 1, 2),
          .w = RandomValues(out * in, 2, 2 * scale),
          .bias = RandomValues(out, 3),
          .gate = RandomValues(rows * out, 4),
          .dy = RandomValues(rows * out, 5),
          .dx = RandomValues(rows * in, 6),
          .dw = RandomValues(out * in, 7),
          .dbias = RandomValues(out, 8),
          .dgate = RandomValues(rows * out, 9)};
}

struct Results {
  Values dx, dw, dbias, dgate;
  bool operator==(const Results&) const = default;
};

Results Backward(ThreadPool& pool, const Problem& p, DType dtype, DotKernel kernel,
                 int64_t gap = 0) {
  const StridedMatrix w(p.out, p.in, gap, p.w);
  TrainedWeights weights(p.out, p.in, dtype);
  PackTrainedLinear(pool, std::vector<Tensor>{w.view()}, weights);
  const StridedMatrix x(p.rows, p.in, gap, p.x);
  const StridedMatrix bias(1, p.out, gap, p.bias);
  const StridedMatrix gate(p.rows, p.out, gap, p.gate);
  const StridedMatrix dy(p.rows, p.out, gap, p.dy);
  const StridedMatrix dx(p.rows, p.in, gap, p.dx);
  const StridedMatrix dw(p.out, p.in, gap, p.dw);
  const StridedMatrix dbias(1, p.out, gap, p.dbias);
  const StridedMatrix dgate(p.rows, p.out, gap, p.dgate);
  const Epilogue epilogue = {
      .bias = bias.view(), .activation = p.activation, .gate = p.gated ? gate.view() : Tensor{}};
  LinearBackward(pool, x.view(), weights, epilogue, dy.view(),
                 {.x = {dx.view(), p.add},
                  .weights = dw.view(),
                  .bias = dbias.view(),
                  .gate = {p.gated ? dgate.view() : Tensor{}, p.add}},
                 kernel);
  return {dx.values(), dw.values(), dbias.values(), dgate.values()};
}

// A number and the bound of its error.
struct Estimate {
  double value = 0;
  double error = 0;
};

class Expected {
 public:
  Expected(const Problem& p, DType dtype) : p_(p), dtype_(dtype) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t o = 0; o < p.out; ++o) AddGradient(r, o);
    }
  }

  Estimate Dx(int64_t r, int64_t i) const {
    return Product(p_.out, p_.add ? p_.dx[At(r, i, p_.in)] : 0, [&](int64_t o) {
      return std::pair(Operand(dz_[At(r, o, p_.out)]), Rounded(p_.w[At(o, i, p_.in)]));
    });
  }
  Estimate Dw(int64_t o, int64_t i) const {
    return Product(p_.rows, p_.dw[At(o, i, p_.in)], [&](int64_t r) {
      return std::pair(Operand(dz_[At(r, o, p_.out)]), Rounded(p_.x[At(r, i, p_.in)]));
    });
  }
  Estimate Dbias(int64_t o) const {
    return Product(p_.rows, p_.dbias[At(0, o, p_.out)],
                   [&](int64_t r) { return std::pair(dz_[At(r, o, p_.out)], 1.0); });
  }
  Estimate Dgate(int64_t r, int64_t o) const { return dgate_[At(r, o, p_.out)]; }

 private:
  static size_t At(int64_t row, int64_t column, int64_t cols) {
    return static_cast<size_t>(row * cols + column);
  }
  double Rounded(float x) const { return dtype_ == DType::kBF16 ? ToFloat(ToBF16(x)) : x; }

  // dz as a product's operand: where it is dy itself we know its rounding, else only its bound.
  Estimate Operand(const Estimate& dz) const {
    if (dtype_ == DType::kF32) return dz;
    if (dz.error == 0) return {Rounded(static_cast<float>(dz.value)), 0};
    return {dz.value, dz.error + kBF16Roundoff * (std::abs(dz.value) + dz.error)};
  }

  // start + sum_k a_k b_k.
  template <typename Factors>
  static Estimate Product(int64_t n, double start, const Factors& factors) {
    Estimate sum = {start, std::abs(start) * kUnitRoundoff};
    for (int64_t k = 0; k < n; ++k) {
      const auto [a, b] = factors(k);
      sum.value += a.value * b;
      sum.error += (a.error + Gamma(n + 3) * std::abs(a.value)) * std::abs(b);
    }
    return sum;
  }

  // dz and dgate of an element. Slopes are at most 1.2, as are their derivatives.
  void AddGradient(int64_t r, int64_t o) {
    const double dy = p_.dy[At(r, o, p_.out)];
    if (p_.activation == Activation::kNone && !p_.gated) return dz_.push_back({dy, 0});
    Estimate z = Product(p_.in, p_.bias[At(0, o, p_.out)], [&](int64_t i) {
      return std::pair(Estimate{Rounded(p_.x[At(r, i, p_.in)])}, Rounded(p_.w[At(o, i, p_.in)]));
    });
    const double gate = p_.gated ? p_.gate[At(r, o, p_.out)] : 1;
    const double slope = ActivationSlope(p_.activation, z.value);
    const double error = 1.2 * z.error + 20 * kUnitRoundoff * (1 + std::abs(z.value)) + 1e-10;
    dz_.push_back({dy * gate * slope, std::abs(dy * gate) * error});
    const double start = p_.add ? p_.dgate[At(r, o, p_.out)] : 0;
    dgate_.push_back({start + dy * Activate(p_.activation, z.value),
                      std::abs(dy) * error + std::abs(start) * kUnitRoundoff});
  }

  const Problem& p_;
  DType dtype_;
  std::vector<Estimate> dz_, dgate_;
};

void ExpectNear(float value, const Estimate& estimate) {
  EXPECT_NEAR(value, estimate.value, estimate.error + 1e-30);
}

void ExpectGradients(const Problem& p, DType dtype, const Results& results) {
  const Expected expected(p, dtype);
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t i = 0; i < p.in; ++i) {
      ExpectNear(results.dx[static_cast<size_t>(r * p.in + i)], expected.Dx(r, i));
    }
    for (int64_t o = 0; o < p.out; ++o) {
      if (!p.gated) break;
      ExpectNear(results.dgate[static_cast<size_t>(r * p.out + o)], expected.Dgate(r, o));
    }
  }
  for (int64_t o = 0; o < p.out; ++o) {
    ExpectNear(results.dbias[static_cast<size_t>(o)], expected.Dbias(o));
    for (int64_t i = 0; i < p.in; ++i) {
      ExpectNear(results.dw[static_cast<size_t>(o * p.in + i)], expected.Dw(o, i));
    }
  }
}

using LinearBackwardTest = LinearKernelTest;

INSTANTIATE_TEST_SUITE_P(Kernels, LinearBackwardTest, AllLinearKernels());

TEST_P(LinearBackwardTest, MatchesDoubleLoopsOfEverySize) {
  ThreadPool pool(2);
  for (int64_t rows : {1, 2, 15, 33, 64}) {
    for (auto [in, out] : {std::pair{1, 1}, {2, 3}, {7, 64}, {33, 65}, {66, 17}, {32, 130}}) {
      const Problem p = MakeProblem(rows, in, out, Activation::kNone, false, rows % 2 == 1);
      ExpectGradients(p, dtype(), Backward(pool, p, dtype(), kernel()));
    }
  }
}

TEST_P(LinearBackwardTest, MatchesDoubleLoopsThroughEveryEpilogue) {
  ThreadPool pool(2);
  for (Activation activation : kActivations) {
    // Within the error of z around zero ReLU has no slope that a model of errors could tell.
    if (activation == Activation::kRelu) continue;
    for (bool gated : {false, true}) {
      const Problem p = MakeProblem(37, 21, 67, activation, gated, gated);
      ExpectGradients(p, dtype(), Backward(pool, p, dtype(), kernel()));
    }
  }
}

TEST_P(LinearBackwardTest, MatchesDoubleLoopsBeyondOneBlockOfRows) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(2100, 9, 18, Activation::kTanh, true, false);
  ExpectGradients(p, dtype(), Backward(pool, p, dtype(), kernel()));
}

TEST_P(LinearBackwardTest, AcceptsStridedMisalignedRows) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(35, 37, 75, Activation::kSilu, true, true);
  const Results adjacent = Backward(pool, p, dtype(), kernel());
  for (int64_t gap : {1, 3, 16}) {
    EXPECT_TRUE(Backward(pool, p, dtype(), kernel(), gap) == adjacent) << gap;
  }
}

TEST_P(LinearBackwardTest, RepeatsBitForBitOnManyThreads) {
  ThreadPool one(1);
  ThreadPool three(3);
  const Problem p = MakeProblem(1300, 70, 130, Activation::kGeluErf, true, true);
  EXPECT_TRUE(Backward(one, p, dtype(), kernel()) == Backward(three, p, dtype(), kernel()));
}

TEST_P(LinearBackwardTest, LeavesOutWhatIsNotWanted) {
  ThreadPool pool(2);
  const Problem p = MakeProblem(40, 20, 30, Activation::kSilu, true, false);
  const Results all = Backward(pool, p, dtype(), kernel());
  const StridedMatrix w(p.out, p.in, 0, p.w);
  TrainedWeights weights(p.out, p.in, dtype());
  PackTrainedLinear(pool, std::vector<Tensor>{w.view()}, weights);
  const StridedMatrix x(p.rows, p.in, 0, p.x);
  const StridedMatrix bias(1, p.out, 0, p.bias);
  const StridedMatrix gate(p.rows, p.out, 0, p.gate);
  const StridedMatrix dy(p.rows, p.out, 0, p.dy);
  const Epilogue epilogue = {.bias = bias.view(), .activation = p.activation, .gate = gate.view()};
  LinearBackward(pool, x.view(), weights, epilogue, dy.view(), {}, kernel());
  const StridedMatrix dx(p.rows, p.in, 0);
  LinearBackward(pool, x.view(), weights, epilogue, dy.view(), {.x = {dx.view()}}, kernel());
  EXPECT_EQ(dx.values(), all.dx);
  EXPECT_EQ(dy.values(), p.dy);
  LinearBackward(pool, x.view(), weights, epilogue, dy.view(), {.gate = {dy.view()}}, kernel());
  EXPECT_EQ(dy.values(), all.dgate);
}

}  // namespace
}  // namespace hippodrome::cpu::linear_backward_test
