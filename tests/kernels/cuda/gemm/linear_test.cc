#include "kernels/cuda/gemm/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/kernels/cuda/gemm/linear_problem.h"

namespace hippodrome::cuda::linear_test {
namespace {

class LinearTest : public LinearProblemTest {
 protected:
  // The bound of the contract, g(in + 2) |x| |W|^T, and the rounding to the type of y.
  void ExpectProduct(const Problem& p, const Values& y) {
    const double last = GetParam().y == DType::kBF16 ? 0x1p-8 : 0;
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t c = 0; c < p.out; ++c) {
        double sum = 0;
        double magnitude = 0;
        for (int64_t k = 0; k < p.in; ++k) {
          const double product =
              double{Stored(GetParam().w, p.x[static_cast<size_t>(r * p.in + k)])} *
              Stored(GetParam().w, p.w[static_cast<size_t>(c * p.in + k)]);
          sum += product;
          magnitude += std::abs(product);
        }
        const double error = Gamma(p.in + 2) * magnitude;
        ASSERT_NEAR(y[static_cast<size_t>(r * p.out + c)], sum,
                    error + last * (std::abs(sum) + error))
            << "row " << r << " column " << c << " of " << p.rows << "x" << p.in << "x" << p.out;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, LinearTest,
                         testing::Values(Types{DType::kF32, DType::kF32, DType::kF32},
                                         Types{DType::kF32, DType::kBF16, DType::kF32},
                                         Types{DType::kBF16, DType::kBF16, DType::kF32},
                                         Types{DType::kBF16, DType::kBF16, DType::kBF16}));

TEST_P(LinearTest, MatchesDoubleLoops) {
  for (int64_t rows : {1, 2, 8, 9, 19}) {
    for (auto [in, out] : {std::pair{1, 1}, {2, 3}, {7, 16}, {8, 8}, {33, 25}, {64, 33}}) {
      const Problem p = MakeProblem(rows, in, out);
      ExpectProduct(p, Multiply(p));
    }
  }
}

TEST_P(LinearTest, MatchesDoubleLoopsOverADeepProduct) {
  for (int64_t in : {4096, 4099, 4104}) {
    const Problem p = MakeProblem(3, in, 5);
    ExpectProduct(p, Multiply(p));
  }
}

// Blocks are wider where there are enough columns for every multiprocessor.
TEST_P(LinearTest, ColumnsAreTheSameInWiderBlocks) {
  constexpr int64_t kIn = 24;
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

TEST_P(LinearTest, AcceptsStridedMisalignedRows) {
  for (int64_t in : {37, 40}) {
    const Problem p = MakeProblem(9, in, 19);
    for (int64_t gap : {1, 3, 4, 8}) EXPECT_EQ(Multiply(p, gap), Multiply(p));
  }
}

TEST_P(LinearTest, RowsAreIndependentBitForBit) {
  constexpr int64_t kMost = 20;
  for (int64_t in : {700, 704}) {
    const Problem all = MakeProblem(kMost, in, 9);
    const auto w = Pack(all);
    const Values expected = Multiply(all, *w);
    for (int64_t rows = 1; rows <= kMost; ++rows) {
      Problem some = all;
      some.rows = rows;
      some.x.erase(some.x.begin(), some.x.begin() + (kMost - rows) * all.in);  // the last rows
      const Values y = Multiply(some, *w);
      ASSERT_EQ(std::memcmp(y.data(), expected.data() + (kMost - rows) * all.out,
                            y.size() * sizeof(float)),
                0)
          << rows << " rows";
    }
  }
}

TEST_P(LinearTest, NaNStaysInItsRow) {
  Problem p = MakeProblem(8, 40, 30);
  p.x[3 * 40 + 5] = std::nanf("");
  const Values y = Multiply(p);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 30 == 3);
}

TEST_P(LinearTest, TakesNoRows) { EXPECT_EQ(Multiply(MakeProblem(0, 8, 8)), Values{}); }

// Takes, or refuses, every call.
class FakeLibrary final : public MatmulLibrary {
 public:
  explicit FakeLibrary(bool takes) : takes_(takes) {}
  bool Linear(Device&, const LinearCall& call) override {
    asked_.push_back(call.x.rows);
    return takes_;
  }
  const std::vector<int64_t>& asked() const { return asked_; }

 private:
  bool takes_;
  std::vector<int64_t> asked_;
};

TEST(LinearDispatchTest, AsksTheLibraryForManyRowsAlone) {
  Device device;
  const PackedWeights w(device, 4, 4, DType::kF32);
  for (bool takes : {false, true}) {
    FakeLibrary library(takes);
    for (int64_t rows : {1, 8, 9, 100}) {
      const DeviceMatrix x(device, {rows, 4});
      const DeviceMatrix y(device, {rows, 4}, Values(static_cast<size_t>(rows * 4), 1));
      Linear(device, &library, {.x = x.view(), .w = w, .epilogue = {}, .y = y.view()});
      const bool untouched = takes && rows > 8;
      EXPECT_EQ(y.values(), Values(static_cast<size_t>(rows * 4), untouched ? 1 : 0));
    }
    EXPECT_EQ(library.asked(), (std::vector<int64_t>{9, 100}));
  }
}

// The first proposal that can be used, whatever it would cost in time: the same in every run.
TEST(ChooseCandidate, TakesTheFirstThatTheLibrarySupportsAndThatFits) {
  const std::vector<MatmulCandidate> candidates = {{.supported = false, .workspace_bytes = 0},
                                                   {.supported = true, .workspace_bytes = 65},
                                                   {.supported = true, .workspace_bytes = 64},
                                                   {.supported = true, .workspace_bytes = 0}};
  EXPECT_EQ(ChooseCandidate(candidates, 64), 2u);
  EXPECT_EQ(ChooseCandidate(candidates, 65), 1u);
  EXPECT_EQ(ChooseCandidate(std::span(candidates).first(2), 64), std::nullopt);
  EXPECT_EQ(ChooseCandidate({}, 64), std::nullopt);
}

}  // namespace
}  // namespace hippodrome::cuda::linear_test
