#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cuda/gemm/linear.h"
#include "kernels/host_matrix.h"
#include "kernels/quantized_group.h"
#include "tests/kernels/cuda/gemm/linear_problem.h"

namespace hippodrome::cuda::linear_quantized_test {
namespace {

class LinearQuantizedTest : public LinearProblemTest {
 protected:
  static HostMatrix Host(const Problem& p) { return {p.w.data(), DType::kF32, p.out, p.in}; }

  // A row of x or of W in groups.
  struct Rounded {
    std::vector<int8_t> integers;
    std::vector<float> scales;
  };

  Rounded RoundInputs(const Problem& p, int64_t row) const {
    const int64_t size = QuantizedGroup(GetParam().w);
    Rounded rounded;
    for (int64_t first = 0; first < p.in; first += size) {
      const auto begin = static_cast<size_t>(row * p.in + first);
      const auto count = static_cast<size_t>(std::min(size, p.in - first));
      const auto value = [&](size_t k) { return Stored(GetParam().x, p.x[begin + k]); };
      float largest = 0;
      for (size_t k = 0; k < count; ++k) largest = std::max(largest, std::abs(value(k)));
      const GroupScale scale = ActivationScale(largest);
      for (size_t k = 0; k < count; ++k) rounded.integers.push_back(ToInt8(value(k), scale));
      rounded.integers.resize(rounded.integers.size() + static_cast<size_t>(size) - count);
      rounded.scales.push_back(scale.scale);
    }
    return rounded;
  }

  Rounded RoundWeights(const Problem& p, int64_t row) const {
    const auto size = static_cast<size_t>(QuantizedGroup(GetParam().w));
    const auto groups = static_cast<size_t>(QuantizedGroups(p.in, GetParam().w));
    Rounded rounded = {std::vector<int8_t>(groups * size), {}};
    for (size_t group = 0; group < groups; ++group) {
      int8_t* to = rounded.integers.data() + group * size;
      rounded.scales.push_back(
          ToFloat(ReadGroup(Host(p), row, static_cast<int64_t>(group), GetParam().w, to)));
    }
    return rounded;
  }

  // The sum of groups S_g, the bound of the contract, g(G + 2) sum_g |S_g|, and the rounding to the
  // type of y.
  void ExpectProduct(const Problem& p, const Values& y) {
    const double last = GetParam().y == DType::kBF16 ? 0x1p-8 : 0;
    const auto size = static_cast<size_t>(QuantizedGroup(GetParam().w));
    std::vector<Rounded> rows;
    for (int64_t r = 0; r < p.rows; ++r) rows.push_back(RoundInputs(p, r));
    for (int64_t c = 0; c < p.out; ++c) {
      const Rounded w = RoundWeights(p, c);
      for (int64_t r = 0; r < p.rows; ++r) {
        const Rounded& x = rows[static_cast<size_t>(r)];
        double sum = 0;
        double magnitude = 0;
        for (size_t group = 0; group < w.scales.size(); ++group) {
          const double scale = double{x.scales[group]} * w.scales[group];
          int32_t dot = 0;
          for (size_t k = group * size; k < (group + 1) * size; ++k) {
            dot += x.integers[k] * w.integers[k];
          }
          sum += scale * dot;
          magnitude += std::abs(scale * dot);
        }
        const double error = Gamma(static_cast<int64_t>(w.scales.size()) + 2) * magnitude;
        ASSERT_NEAR(y[static_cast<size_t>(r * p.out + c)], sum,
                    error + last * (std::abs(sum) + error))
            << "row " << r << " column " << c << " of " << p.rows << "x" << p.in << "x" << p.out;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, LinearQuantizedTest,
                         testing::Values(Types{DType::kF32, DType::kI8, DType::kF32},
                                         Types{DType::kF32, DType::kI4, DType::kF32},
                                         Types{DType::kBF16, DType::kI8, DType::kF32},
                                         Types{DType::kBF16, DType::kI4, DType::kBF16},
                                         Types{DType::kBF16, DType::kI8, DType::kBF16}));

TEST_P(LinearQuantizedTest, MatchesDoubleLoops) {
  for (int64_t rows : {1, 2, 8, 9, 16, 17, 37, 64, 65}) {
    for (auto [in, out] : {std::pair{1, 1}, {31, 3}, {32, 16}, {127, 8}, {128, 25}, {300, 33}}) {
      const Problem p = MakeProblem(rows, in, out);
      ExpectProduct(p, Multiply(p));
    }
  }
}

TEST_P(LinearQuantizedTest, MatchesDoubleLoopsOverADeepProduct) {
  for (int64_t rows : {3, 18}) {
    for (int64_t in : {4096, 4099}) {
      const Problem p = MakeProblem(rows, in, 5);
      ExpectProduct(p, Multiply(p));
    }
  }
}

// Columns that are blocks of 64 for half of the multiprocessors, where each has all rows.
int64_t ManyColumns(const Device& device, int64_t row_blocks) {
  return (device.multiprocessors() / 2 + row_blocks - 1) / row_blocks * 64;
}

TEST_P(LinearQuantizedTest, MatchesDoubleLoopsOfManyRows) {
  for (auto [rows, out] : {std::pair{130, ManyColumns(device_, 2) - 9},  // rows of y not aligned
                           {66, ManyColumns(device_, 1)}}) {
    const Problem p = MakeProblem(rows, 140, out);
    ExpectProduct(p, Multiply(p));
  }
}

// As floats and as a file's integers, in one piece and stacked.
TEST_P(LinearQuantizedTest, StoredIntegersGiveTheSameBits) {
  constexpr int64_t kIn = 301;
  constexpr int64_t kOut = 19;
  const Problem p = MakeProblem(3, kIn, kOut);
  const DType type = GetParam().w;
  const int64_t size = QuantizedGroup(type), groups = QuantizedGroups(kIn, type);
  std::vector<int8_t> integers;
  std::vector<BF16> scales;
  for (int64_t row = 0; row < kOut; ++row) {
    std::vector<int8_t> of_row(static_cast<size_t>(groups * size));
    for (int64_t group = 0; group < groups; ++group) {
      scales.push_back(ReadGroup(Host(p), row, group, type, of_row.data() + group * size));
    }
    of_row.resize(kIn + 1);  // an even number
    for (size_t k = 0; k < kIn; k += type == DType::kI8 ? 1 : 2) {
      const int pair = PackInt4(of_row[k], of_row[k + 1]);
      integers.push_back(type == DType::kI8 ? of_row[k] : static_cast<int8_t>(pair));
    }
  }
  constexpr int64_t kFirst = 7;
  const HostMatrix parts[] = {{integers.data(), type, kFirst, kIn, scales.data()},
                              {integers.data() + kFirst * RowBytes(type, kIn), type, kOut - kFirst,
                               kIn, scales.data() + kFirst * groups}};
  EXPECT_EQ(Multiply(p, *PackLinear(device_, parts, type)), Multiply(p));
}

// Blocks are wider where there are enough columns for every multiprocessor.
TEST_P(LinearQuantizedTest, ColumnsAreTheSameInWiderBlocks) {
  constexpr int64_t kIn = 260;
  constexpr int64_t kSome = 50;
  for (int64_t tiles : {4, 8}) {
    const int64_t out = tiles * 8 * device_.multiprocessors() + 5;
    const Problem wide = MakeProblem(1, kIn, out);
    const Values expected = Multiply(wide);
    for (int64_t first : {int64_t{0}, out - kSome}) {
      Problem narrow = {1, kIn, kSome, wide.x, {}};
      narrow.w.assign(wide.w.begin() + first * kIn, wide.w.begin() + (first + kSome) * kIn);
      EXPECT_EQ(Multiply(narrow),
                Values(expected.begin() + first, expected.begin() + first + kSome));
    }
  }
}

TEST_P(LinearQuantizedTest, AcceptsStridedMisalignedRows) {
  for (int64_t in : {37, 40}) {
    for (int64_t rows : {9, 20}) {
      const Problem p = MakeProblem(rows, in, 19);
      for (int64_t gap : {1, 3, 4, 8}) EXPECT_EQ(Multiply(p, gap), Multiply(p));
    }
  }
}

// Of few rows and of as many as are multiplied in other blocks, which takes many columns as well.
TEST_P(LinearQuantizedTest, RowsAreIndependentBitForBit) {
  constexpr int64_t kMost = 70;
  constexpr int64_t kIn = 1100;
  constexpr int64_t kSome = 40;
  const Problem all = MakeProblem(kMost, kIn, ManyColumns(device_, 1));
  const Values expected = Multiply(all);
  for (int64_t rows : {1, 8, 9, 16, 17, 64, 65}) {
    Problem some = {rows, kIn, rows > 64 ? all.out : kSome, {}, {}};
    some.x.assign(all.x.end() - rows * kIn, all.x.end());
    some.w.assign(all.w.begin(), all.w.begin() + some.out * kIn);
    const Values y = Multiply(some);
    for (int64_t row = 0; row < rows; ++row) {
      const float* of_all = expected.data() + (kMost - rows + row) * all.out;
      ASSERT_TRUE(std::equal(of_all, of_all + some.out, y.data() + row * some.out))
          << "row " << row << " of " << rows;
    }
  }
}

TEST_P(LinearQuantizedTest, WhatIsNotFiniteStaysInItsRow) {
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (auto [rows, out] : {std::pair{int64_t{8}, int64_t{30}}, {66, ManyColumns(device_, 1)}}) {
      Problem p = MakeProblem(rows, 200, out);
      p.x[3 * 200 + 5] = value;
      const Values y = Multiply(p);
      const auto columns = static_cast<size_t>(out);
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / columns == 3);
    }
  }
}

TEST_P(LinearQuantizedTest, TinyAndLargeInputs) {
  Problem p = MakeProblem(2, 128, 4);
  for (size_t k = 0; k < 128; ++k) {
    p.x[k] *= 0x1p-110f;
    p.x[128 + k] *= 0x1p100f;
  }
  const Values y = Multiply(p);
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(y[c], 0);
  ExpectProduct(p, y);
}

TEST_P(LinearQuantizedTest, TakesNoRows) { EXPECT_EQ(Multiply(MakeProblem(0, 8, 8)), Values{}); }

TEST_P(LinearQuantizedTest, FusesTheEpilogue) {
  const DType y_type = GetParam().y;
  for (auto [rows, out] : {std::pair{int64_t{5}, int64_t{12}}, {66, ManyColumns(device_, 1)}}) {
    const Problem p = MakeProblem(rows, 64, out);
    const Values bias = RandomValues(out, 3), residual = RandomValues(rows * out, 4);
    const DeviceMatrix x(device_, {rows, 64, GetParam().x}, p.x);
    const DeviceMatrix b(device_, {1, out, y_type}, bias);
    const DeviceMatrix sums(device_, {rows, out}), y(device_, {rows, out, y_type}, residual);
    const auto w = Pack(p);
    Linear(device_, nullptr, {.x = x.view(), .w = *w, .epilogue = {}, .y = sums.view()});
    Linear(device_, nullptr,
           {.x = x.view(),
            .w = *w,
            .epilogue = {.bias = b.view(), .residual = y.view()},
            .y = y.view()});
    const Values products = sums.values(), values = y.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const float biased = products[i] + Stored(y_type, bias[i % static_cast<size_t>(out)]);
      ASSERT_EQ(values[i], Stored(y_type, biased + Stored(y_type, residual[i])));
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::linear_quantized_test
