#include "kernels/cpu/gemm/product_inputs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/rows/layer_norm.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu {
namespace {

using Values = std::vector<float>;

class ProductInputsTest : public testing::TestWithParam<DType> {
 protected:
  DType weights() const { return GetParam(); }
  // Whether this processor's products read what others have rounded.
  bool ReadsRounded() const { return NewProductInputs(1, 1, weights()).view.dtype != DType::kF32; }

  // W [out, in].
  std::unique_ptr<PackedWeights> RandomWeights(int64_t out, int64_t in, uint32_t seed) {
    const Values w = RandomValues(out * in, seed);
    const HostMatrix host = {w.data(), DType::kF32, out, in};
    return PackLinear(pool_, std::span(&host, 1), weights());
  }

  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Weights, ProductInputsTest, testing::Values(DType::kBF16, DType::kI8),
                         [](const auto& test) { return WeightsName(test.param); });

struct Shape {
  int64_t rows, in, inner;
};

TEST_P(ProductInputsTest, GiveTheBitsOfRowsThatProductsRoundThemselves) {
  if (!ReadsRounded()) GTEST_SKIP() << "products make rows of their own";
  // LN, a product with GELU, another one.
  const auto mlp = [&](const Shape& s, DType inputs) {
    const StridedMatrix x(s.rows, s.in, 0, RandomValues(s.rows * s.in, 1));
    const StridedMatrix gamma(1, s.in, 0, RandomValues(s.in, 2));
    const StridedMatrix beta(1, s.in, 0, RandomValues(s.in, 3));
    const StridedMatrix bias(1, s.inner, 0, RandomValues(s.inner, 4));
    const OwnedTensor u = NewProductInputs(s.rows, s.in, inputs);
    const OwnedTensor hidden = NewProductInputs(s.rows, s.inner, inputs);
    const StridedMatrix y(s.rows, s.in, 0);
    LayerNorm(pool_, x.view(), gamma.view(), beta.view(), 1e-5, u);
    Linear(pool_, u, *RandomWeights(s.inner, s.in, 5),
           {.bias = bias.view(), .activation = Epilogue::Activation::kGeluTanh}, hidden);
    Linear(pool_, hidden, *RandomWeights(s.in, s.inner, 6), {.residual = x.view()}, y.view());
    return y.values();
  };
  for (const int64_t rows : {1, 7, 33, 250}) {
    for (const auto [in, inner] : {std::pair<int64_t, int64_t>{96, 134}, {95, 63}, {513, 300}}) {
      const Shape s = {rows, in, inner};
      EXPECT_EQ(mlp(s, weights()), mlp(s, DType::kF32)) << rows << " rows, " << in << ", " << inner;
    }
  }
}

TEST_P(ProductInputsTest, AreRoundedBehindTheWholeEpilogue) {
  if (!ReadsRounded()) GTEST_SKIP() << "products make rows of their own";
  constexpr int64_t kRows = 9;
  constexpr int64_t kIn = 96;
  for (const int64_t out : {134, 131, 256}) {
    const StridedMatrix x(kRows, kIn, 0, RandomValues(kRows * kIn, 1));
    const StridedMatrix gate(kRows, out, 3, RandomValues(kRows * out, 2));
    const StridedMatrix residual(kRows, out, 5, RandomValues(kRows * out, 3));
    const auto w = RandomWeights(out, kIn, 4);
    const auto product = [&](const Tensor& y) {
      Linear(pool_, x.view(), *w, {.gate = gate.view(), .residual = residual.view()}, y);
    };
    const StridedMatrix exact(kRows, out, 0);
    product(exact.view());
    const OwnedTensor expected = NewProductInputs(kRows, out, weights());
    for (int64_t row = 0; row < kRows; ++row) {
      StoreInputs(F32Row(exact.view(), row), expected.view, row);
    }
    const OwnedTensor y = NewProductInputs(kRows, out, weights());
    product(y);
    const auto bytes = static_cast<size_t>(kRows * y.view.stride) * SizeOf(y.view.dtype);
    EXPECT_EQ(std::memcmp(y.view.data, expected.view.data, bytes), 0) << out << " columns";
  }
}

TEST(ProductInputTypeTest, IsTheWeightsOwnOrF32) {
  EXPECT_EQ(NewProductInputs(2, 5, DType::kF32).view.dtype, DType::kF32);
  EXPECT_EQ(NewProductInputs(2, 5, DType::kI4).view.dtype, DType::kF32);
}

TEST(CopyGroupsTest, ErrsByHalfAStepOfAGroup) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kCols = 300;
  const OwnedTensor inputs = NewProductInputs(kRows, kCols, DType::kI8);
  if (inputs.view.dtype != DType::kI8) GTEST_SKIP() << "products make rows of their own";
  const Values values = RandomValues(kRows * kCols, 1);
  CopyGroupsIn(values, inputs);
  Values copy(values.size());
  CopyGroupsOut(inputs, copy);
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    const float scale = GroupAt(inputs, i / kCols, i % kCols / kInt8Group)->scale;
    EXPECT_NEAR(copy[i], values[i], 0.501f * scale) << i;
  }
}

}  // namespace
}  // namespace hippodrome::cpu
