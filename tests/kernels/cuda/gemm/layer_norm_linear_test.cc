#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/rows/layer_norm.h"
#include "tests/kernels/cuda/gemm/linear_problem.h"

namespace hippodrome::cuda::layer_norm_linear_test {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr double kEpsilon = 1e-5;
constexpr auto kGelu = Epilogue::Activation::kGeluTanh;

class LayerNormLinearTest : public testing::Test {
 protected:
  struct Operands {
    Operands(Device& device, int64_t rows, int64_t in, int64_t out, int64_t gap = 0,
             DType weights = kBF16)
        : x(device, {rows, in, DType::kF32, gap}, RandomValues(rows * in, 1)),
          gamma(device, {1, in}, RandomValues(in, 2)),
          beta(device, {1, in}, RandomValues(in, 3)),
          u(device, {rows, in, kBF16}),
          bias(device, {1, out, kBF16}, RandomValues(out, 4)) {
      const std::vector<float> values = RandomValues(out * in, 5);
      const HostMatrix host = {values.data(), DType::kF32, out, in};
      w = PackLinear(device, std::span(&host, 1), weights);
    }
    NormParameters norm() const { return {gamma.view(), beta.view(), kEpsilon}; }

    DeviceMatrix x, gamma, beta, u, bias;
    std::unique_ptr<PackedWeights> w;
  };

  bool CanNormalize(const Operands& o) {
    const DeviceMatrix y(device_, {o.x.view().rows, o.w->out(), kBF16});
    return CanNormalizeInside(device_, o.x.view(), o.norm(), {o.u.view(), *o.w, {}, y.view()});
  }

  // y starts as what the residual reads.
  void ExpectTheBitsOfBoth(int64_t rows, int64_t in, int64_t out, Epilogue epilogue = {},
                           int64_t gap = 0) {
    SCOPED_TRACE(testing::Message() << rows << "x" << in << "x" << out);
    const Operands o(device_, rows, in, out, gap);
    const std::vector<float> before = RandomValues(rows * out, 6);
    const DeviceMatrix together(device_, {rows, out, kBF16, gap}, before);
    const DeviceMatrix apart(device_, {rows, out, kBF16, gap}, before);
    const auto with = [&](const DeviceMatrix& y) {
      Epilogue full = epilogue;
      full.bias = o.bias.view();
      if (epilogue.residual.data != nullptr) full.residual = y.view();
      return full;
    };
    ASSERT_TRUE(CanNormalize(o));
    LayerNormLinearStep(device_, o.x.view(), o.norm(),
                        {o.u.view(), *o.w, with(together), together.view()});
    EXPECT_EQ(o.u.values(), std::vector<float>(rows * in));
    LayerNorm(device_, o.x.view(), o.gamma.view(), o.beta.view(), kEpsilon, o.u.view());
    LinearStep(device_, {o.u.view(), *o.w, with(apart), apart.view()});
    EXPECT_EQ(together.values(), apart.values());
    EXPECT_TRUE(together.SurroundingsAreZero());
  }

  Device device_;
};

TEST_F(LayerNormLinearTest, GivesTheBitsOfBoth) {
  // By the warps of a row: as many rows as fit, and fewer; some warps without one.
  for (auto [rows, in] : {std::pair{1, 8},
                          {8, 64},
                          {7, 512},
                          {4, 520},
                          {3, 768},
                          {2, 1544},
                          {1, 2048},
                          {2, 2048},
                          {1, 2560},
                          {1, 4096}}) {
    ExpectTheBitsOfBoth(rows, in, 33);
  }
}

TEST_F(LayerNormLinearTest, InBlocksOfEveryWidth) {
  for (int64_t tiles : {2, 4, 8}) {
    ExpectTheBitsOfBoth(2, 72, tiles * 8 * device_.multiprocessors() + 5);
  }
}

TEST_F(LayerNormLinearTest, WithEpiloguesAndRowsApart) {
  ExpectTheBitsOfBoth(2, 768, 50, {.activation = kGelu});
  const DeviceMatrix some(device_, {1, 1, kBF16});
  ExpectTheBitsOfBoth(3, 768, 48, {.residual = some.view()}, 8);
}

TEST_F(LayerNormLinearTest, WhatDoesNotFitIsRefused) {
  const auto can = [&](int64_t rows, int64_t in, int64_t out, int64_t gap = 0,
                       DType weights = kBF16) {
    return CanNormalize(Operands(device_, rows, in, out, gap, weights));
  };
  EXPECT_TRUE(can(8, 512, 8));
  EXPECT_FALSE(can(9, 512, 8));
  EXPECT_FALSE(can(5, 520, 8));
  EXPECT_TRUE(can(1, 4096, 8));
  EXPECT_FALSE(can(1, 4104, 8));
  EXPECT_FALSE(can(1, 516, 8)) << "no whole vectors of weights";
  EXPECT_FALSE(can(2, 512, 8, 1)) << "rows that are not aligned";
  EXPECT_FALSE(can(1, 512, 8, 0, DType::kF32));
  EXPECT_FALSE(can(1, 512, 8, 0, DType::kI8));
  const Operands o(device_, 1, 512, 8);
  const DeviceMatrix logits(device_, {1, 8});
  EXPECT_FALSE(
      CanNormalizeInside(device_, o.x.view(), o.norm(), {o.u.view(), *o.w, {}, logits.view()}));
  const int64_t widest = 4 * 32 * device_.multiprocessors();
  EXPECT_TRUE(can(1, 8, widest));
  EXPECT_FALSE(can(1, 8, widest + 1)) << "every block would normalise";
}

}  // namespace
}  // namespace hippodrome::cuda::layer_norm_linear_test
