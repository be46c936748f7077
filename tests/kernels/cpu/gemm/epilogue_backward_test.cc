#include "kernels/cpu/gemm/epilogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cpu/activations.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::epilogue_backward_test {
namespace {

using Values = std::vector<float>;
using Activation = Epilogue::Activation;

// Every activation's slope errs by a few roundings of numbers up to |x slope'| + 1, x itself being
// rounded in the argument of the exponential function.
constexpr double kSlopeError = 16 * kUnitRoundoff;

TEST(EpilogueBackwardTest, MatchesCentralDifferences) {
  for (Activation activation : kActivations) {
    for (int64_t n : {1, 7, 16, 39, 1000}) {
      const Values x = RandomValues(n, 1, 8);
      const Values dy = RandomValues(n, 2);
      const Values gate = RandomValues(n, 3);
      Values dz = x;
      Values dgate(x.size(), 5.0f);
      ApplyEpilogueBackward({.cols = n,
                             .activation = activation,
                             .bias = nullptr,
                             .gate = gate.data(),
                             .dy = dy.data(),
                             .z = dz.data(),
                             .dgate = dgate.data(),
                             .add_to_dgate = true});
      for (size_t i = 0; i < x.size(); ++i) {
        const double factor = double{dy[i]} * gate[i];
        EXPECT_NEAR(dz[i], factor * ActivationSlope(activation, x[i]),
                    kSlopeError * std::abs(factor) + 1e-10)
            << x[i];
        EXPECT_NEAR(dgate[i], 5 + dy[i] * Activate(activation, x[i]), 16 * kUnitRoundoff * 8)
            << x[i];
      }
    }
  }
}

TEST(EpilogueBackwardTest, ReplacesTheGradientOfTheOutput) {
  const Values x = RandomValues(37, 1);
  const Values dy = RandomValues(37, 2);
  Values apart(37);
  Values within = dy;
  Values dz[2] = {x, x};
  EpilogueBackwardArguments arguments = {.cols = 37,
                                         .activation = Activation::kSilu,
                                         .bias = nullptr,
                                         .gate = nullptr,
                                         .dy = dy.data(),
                                         .z = dz[0].data(),
                                         .dgate = apart.data(),
                                         .add_to_dgate = false};
  ApplyEpilogueBackward(arguments);
  arguments.dy = within.data();
  arguments.dgate = within.data();
  arguments.z = dz[1].data();
  ApplyEpilogueBackward(arguments);
  EXPECT_EQ(dz[0], dz[1]);
  EXPECT_EQ(apart, within);
}

TEST(EpilogueBackwardTest, IsFiniteFarFromZero) {
  for (Activation activation : kActivations) {
    for (float x : {-1e30f, -1e10f, -100.0f, -0.0f, 0.0f, 1e-30f, 100.0f, 1e10f, 1e30f}) {
      Values z(16, x);
      const Values dy(16, 1.0f);
      ApplyEpilogueBackward({.cols = 16,
                             .activation = activation,
                             .bias = nullptr,
                             .gate = nullptr,
                             .dy = dy.data(),
                             .z = z.data(),
                             .dgate = nullptr,
                             .add_to_dgate = false});
      for (float slope : z) EXPECT_LE(std::abs(slope), 1.2f) << x;
      if (std::abs(x) < 100) continue;
      const bool flat = activation == Activation::kTanh || activation == Activation::kSigmoid;
      const double far = flat ? 0 : activation == Activation::kNone || x > 0 ? 1 : 0;
      EXPECT_EQ(z[0], static_cast<float>(far)) << x;
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::epilogue_backward_test
