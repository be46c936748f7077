#include "kernels/cpu/base/elementwise.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::elementwise_test {
namespace {

using Values = std::vector<float>;

// Rows and columns: empty, tails of vectors, rows longer than a span, many short rows.
constexpr int64_t kShapes[][2] = {{0, 5},    {3, 0},     {1, 1},     {7, 3},
                                  {5, 1000}, {3, 20000}, {1, 40001}, {9000, 3}};

template <typename Body>
void ForShapes(const Body& body) {
  for (const auto& shape : kShapes) {
    for (const int64_t gap : {0, 3}) {
      SCOPED_TRACE(std::to_string(shape[0]) + " x " + std::to_string(shape[1]));
      body(shape[0], shape[1], gap);
    }
  }
}

TEST(ElementwiseTest, FillsAllElements) {
  ThreadPool pool(2);
  ForShapes([&](int64_t rows, int64_t cols, int64_t gap) {
    const StridedMatrix x(rows, cols, gap);
    Fill(pool, 2.5f, x.view());
    EXPECT_EQ(x.values(), Values(size_t(rows * cols), 2.5f));
  });
}

TEST(ElementwiseTest, LeavesTheGapsBetweenRows) {
  ThreadPool pool(2);
  const OwnedTensor x = NewMatrix(4, 10, DType::kF32);
  Fill(pool, 1, x.view.Cols(2, 5));
  EXPECT_EQ(SumOfSquares(pool, x), 4 * 5);
}

TEST(ElementwiseTest, Copies) {
  ThreadPool pool(2);
  ForShapes([&](int64_t rows, int64_t cols, int64_t gap) {
    const StridedMatrix x(rows, cols, 0, RandomValues(rows * cols, 1));
    const StridedMatrix y(rows, cols, gap);
    Copy(pool, x.view(), y.view());
    EXPECT_EQ(y.values(), x.values());
  });
}

TEST(ElementwiseTest, Adds) {
  ThreadPool pool(2);
  ForShapes([&](int64_t rows, int64_t cols, int64_t gap) {
    const TwinMatrix x(rows, cols, gap, 1);
    const TwinMatrix y(rows, cols, 0, 2);
    Add(pool, x.actual(), y.actual());
    Reference().Add(x.expected(), y.expected());
    EXPECT_LE(y.Error(), Gamma(1) * 2);
  });
}

TEST(ElementwiseTest, AveragesWithOneRoundingOfEachOperation) {
  ThreadPool pool(2);
  ForShapes([&](int64_t rows, int64_t cols, int64_t gap) {
    const TwinMatrix x(rows, cols, gap, 1);
    const TwinMatrix y(rows, cols, 0, 2);
    MovingAverage(pool, x.actual(), 0.99, y.actual());
    Reference().MovingAverage(x.expected(), 0.99, y.expected());
    EXPECT_LE(y.Error(), Gamma(4));
  });
}

// Squares are exact, their sums in double.
TEST(SumOfSquaresTest, SumsInDouble) {
  ForShapes([&](int64_t rows, int64_t cols, int64_t gap) {
    const TwinMatrix x(rows, cols, gap, 1);
    ThreadPool one(1);
    ThreadPool three(3);
    const double sum = SumOfSquares(one, x.actual());
    const double expected = Reference().SumOfSquares(x.expected());
    EXPECT_NEAR(sum, expected, 2 * double(rows * cols) * 0x1p-53 * expected);
    EXPECT_EQ(SumOfSquares(three, x.actual()), sum);
  });
}

}  // namespace
}  // namespace hippodrome::cpu::elementwise_test
