#include "kernels/cuda/gemm/activate.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/activations.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::activate_test {
namespace {

class ActivateTest : public testing::TestWithParam<DType> {
 protected:
  // Values of size up to 4, and a few ulp of each activation.
  double tolerance() const { return GetParam() == DType::kBF16 ? 0x1p-7 : 64 * kUnitRoundoff; }
};

INSTANTIATE_TEST_SUITE_P(Types, ActivateTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(ActivateTest, ActivatesGatesAndAdds) {
  constexpr int64_t kRows = 3;
  Device device;
  for (const int64_t cols : {1, 45, 600}) {
    const int64_t n = kRows * cols;
    const DeviceMatrix x(device, {kRows, cols, GetParam(), 2}, RandomValues(n, 1, 3));
    const DeviceMatrix gate(device, {kRows, cols, GetParam(), 1}, RandomValues(n, 2));
    const DeviceMatrix residual(device, {kRows, cols, GetParam(), 3}, RandomValues(n, 3));
    for (const Epilogue::Activation activation : kActivations) {
      const DeviceMatrix y(device, {kRows, cols, GetParam(), 4}, RandomValues(n, 4));
      Activate(device, x.view(),
               {.activation = activation, .gate = gate.view(), .residual = residual.view()},
               y.view());
      const auto in = x.values(), g = gate.values(), r = residual.values(), out = y.values();
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], hippodrome::Activate(activation, in[i]) * g[i] + r[i],
                    tolerance() * std::max(1.0f, std::abs(out[i])));
      }
      EXPECT_TRUE(y.SurroundingsAreZero());
    }
  }
}

TEST_P(ActivateTest, MayReplaceItsInput) {
  Device device;
  const DeviceMatrix x(device, {2, 70, GetParam()}, RandomValues(140, 1, 3));
  const DeviceMatrix y(device, {2, 70, GetParam()}, RandomValues(140, 2));
  const Epilogue epilogue = {.activation = Epilogue::Activation::kGeluErf};
  Activate(device, x.view(), epilogue, y.view());
  Activate(device, x.view(), epilogue, x.view());
  EXPECT_EQ(x.values(), y.values());
}

}  // namespace
}  // namespace hippodrome::cuda::activate_test
