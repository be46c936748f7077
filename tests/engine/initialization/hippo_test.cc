#include "engine/initialization/hippo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hippodrome::hippo_test {
namespace {

using Complex = std::complex<double>;

TEST(HermitianEigenTest, DecomposesAndSorts) {
  constexpr int64_t kSize = 9;
  std::vector<Complex> a(kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    a[size_t(i * kSize + i)] = std::sin(7.0 * double(i));
    for (int64_t j = 0; j < i; ++j) {
      const Complex value(std::sin(3.0 * double(i) + double(j)),
                          std::cos(double(i) - 5.0 * double(j)));
      a[size_t(i * kSize + j)] = value;
      a[size_t(j * kSize + i)] = std::conj(value);
    }
  }
  const HermitianEigen eigen = SolveHermitian(a, kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    EXPECT_LE(eigen.values[size_t(std::max<int64_t>(i, 1) - 1)], eigen.values[size_t(i)]);
    for (int64_t j = 0; j < kSize; ++j) {
      Complex product = 0, gram = 0;
      for (int64_t k = 0; k < kSize; ++k) {
        product += eigen.vectors[size_t(i * kSize + k)] * eigen.values[size_t(k)] *
                   std::conj(eigen.vectors[size_t(j * kSize + k)]);
        gram +=
            std::conj(eigen.vectors[size_t(k * kSize + i)]) * eigen.vectors[size_t(k * kSize + j)];
      }
      EXPECT_LT(std::abs(product - a[size_t(i * kSize + j)]), 1e-13);
      EXPECT_LT(std::abs(gram - (i == j ? 1.0 : 0.0)), 1e-13);
    }
  }
}

// What eigenvectors of any phase share: the moments B* A^j B and P* A^j B of A = diag(Lambda) - P
// P* equal those of the dense matrix.
TEST(HippoTest, NplrFormHasTheMomentsOfTheDenseMatrix) {
  for (const int64_t size : {2, 8, 16}) {
    const LegS legs = MakeLegS(size);
    const NplrLegS nplr = MakeNplrLegS(size);
    std::vector<double> dense = legs.b;
    std::vector<Complex> modes = nplr.b;  // half of the pairs
    for (int step = 0; step < 4; ++step) {
      double expected_b = 0, expected_p = 0, b = 0, p = 0;
      for (int64_t n = 0; n < size; ++n) {
        expected_b += legs.b[size_t(n)] * dense[size_t(n)];
        expected_p += std::sqrt(double(n) + 0.5) * dense[size_t(n)];
      }
      for (size_t n = 0; n < modes.size(); ++n) {
        b += 2 * (std::conj(nplr.b[n]) * modes[n]).real();
        p += 2 * (std::conj(nplr.p[n]) * modes[n]).real();
      }
      EXPECT_NEAR(b / expected_b, 1, 1e-12) << size << ", power " << step;
      EXPECT_NEAR(p / expected_p, 1, 1e-12) << size << ", power " << step;
      std::vector<double> next(dense.size());
      for (int64_t n = 0; n < size; ++n) {
        for (int64_t k = 0; k < size; ++k) {
          next[size_t(n)] += legs.a[size_t(n * size + k)] * dense[size_t(k)];
        }
      }
      dense = next;
      for (size_t n = 0; n < modes.size(); ++n)
        modes[n] = nplr.lambda[n] * modes[n] - nplr.p[n] * p;
    }
  }
}

TEST(HippoTest, ModesAreSlowestFirstWithNegativeImaginaryParts) {
  const NplrLegS nplr = MakeNplrLegS(64);
  ASSERT_EQ(nplr.lambda.size(), 32u);
  for (size_t n = 0; n < 32; ++n) {
    EXPECT_EQ(nplr.lambda[n].real(), -0.5);
    EXPECT_LT(nplr.lambda[n].imag(), n == 0 ? 0 : nplr.lambda[n - 1].imag());
  }
}

TEST(HippoTest, FrequenciesOfAllEigenvaluesAreSymmetric) {
  const std::vector<double> all = LegSFrequencies(64);
  ASSERT_EQ(all.size(), 64u);
  EXPECT_NEAR(all.back(), 1303.27, 0.005);  // measured in the published code
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(all[i], -all[63 - i], 1e-10);
  const NplrLegS nplr = MakeNplrLegS(64);
  for (size_t n = 0; n < 32; ++n) EXPECT_NEAR(all[31 - n], nplr.lambda[n].imag(), 1e-10);
}

TEST(HippoTest, LinearAndInverseFrequencies) {
  EXPECT_EQ(LinearFrequencies(3), (std::vector<double>{0, std::numbers::pi, 2 * std::numbers::pi}));
  const std::vector<double> inverse = InverseFrequencies(32, 64);
  ASSERT_EQ(inverse.size(), 32u);
  EXPECT_NEAR(inverse[0], 64 / std::numbers::pi * 63, 1e-9);
  EXPECT_NEAR(inverse[31], 64 / std::numbers::pi * (64.0 / 63 - 1), 1e-12);
}

}  // namespace
}  // namespace hippodrome::hippo_test
