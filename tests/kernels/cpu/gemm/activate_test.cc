#include "kernels/cpu/gemm/activate.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/activations.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::activate_test {
namespace {

// Activations err by a few ulp of values up to 3, or by as many of what exp() is given.
constexpr double kError = 64 * kUnitRoundoff;

TEST(ActivateTest, ActivatesGatesAndAdds) {
  constexpr int64_t kRows = 5;
  for (const int64_t cols : {1, 37, 300}) {
    const int64_t n = kRows * cols;
    const StridedMatrix x(kRows, cols, 3, RandomValues(n, 1, 3));
    const StridedMatrix gate(kRows, cols, 1, RandomValues(n, 2));
    const StridedMatrix residual(kRows, cols, 2, RandomValues(n, 3));
    for (const Epilogue::Activation activation : kActivations) {
      const Epilogue epilogue = {
          .activation = activation, .gate = gate.view(), .residual = residual.view()};
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const StridedMatrix y(kRows, cols, 4);
        Activate(pool, x.view(), epilogue, y.view());
        const auto in = x.values(), g = gate.values(), r = residual.values(), out = y.values();
        for (size_t i = 0; i < out.size(); ++i) {
          EXPECT_NEAR(out[i], hippodrome::Activate(activation, in[i]) * g[i] + r[i], kError);
        }
      }
    }
  }
}

TEST(ActivateTest, MayReplaceItsInput) {
  ThreadPool pool(2);
  const StridedMatrix x(3, 70, 0, RandomValues(210, 1, 3));
  const StridedMatrix y(3, 70, 0);
  const Epilogue epilogue = {.activation = Epilogue::Activation::kGeluErf};
  Activate(pool, x.view(), epilogue, y.view());
  Activate(pool, x.view(), epilogue, x.view());
  EXPECT_EQ(x.values(), y.values());
}

TEST(ActivateTest, TheSigmoidKeepsItsEnds) {
  ThreadPool pool(1);
  const StridedMatrix x(1, 4, 0, {-100, -1e30f, 100, 0});
  Activate(pool, x.view(), {.activation = Epilogue::Activation::kSigmoid}, x.view());
  EXPECT_EQ(x.values(), (std::vector<float>{0, 0, 1, 0.5f}));
}

}  // namespace
}  // namespace hippodrome::cpu::activate_test
