#include "kernels/cuda/base/elementwise.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::elementwise_test {
namespace {

// Shapes of one element, of part of a block and of several, adjacent or not.
const MatrixShape kShapes[] = {{1, 1, DType::kF32, 0},    {7, 45, DType::kF32, 0},
                               {7, 45, DType::kF32, 3},   {3, 1500, DType::kF32, 0},
                               {3, 1500, DType::kF32, 5}, {2500, 1, DType::kF32, 2}};

TEST(ElementwiseTest, CopiesEveryTypeToEveryType) {
  Device device;
  for (MatrixShape shape : kShapes) {
    const std::vector<float> values = RandomValues(shape.rows * shape.cols, 1);
    for (const DType from : {DType::kF32, DType::kBF16}) {
      for (const DType to : {DType::kF32, DType::kBF16}) {
        const DeviceMatrix x(device, {shape.rows, shape.cols, from, shape.gap}, values);
        const DeviceMatrix y(device, {shape.rows, shape.cols, to, 2 * shape.gap});
        Copy(device, x.view(), y.view());
        const std::vector<float> copied = y.values();
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(copied[i], Stored(to, Stored(from, values[i])));
        }
        EXPECT_TRUE(y.SurroundingsAreZero());
      }
    }
  }
}

TEST(ElementwiseTest, FillsAndAddsEveryElementOnce) {
  Device device;
  for (const MatrixShape& shape : kShapes) {
    std::vector<float> values = RandomValues(shape.rows * shape.cols, 1);
    const DeviceMatrix x(device, shape, values);
    const DeviceMatrix y(device, shape);
    Fill(device, 0.5f, y.view());
    Add(device, x.view(), y.view());
    for (float& value : values) value += 0.5f;
    EXPECT_EQ(y.values(), values);
    EXPECT_TRUE(y.SurroundingsAreZero());
  }
}

TEST(ElementwiseTest, AnAverageOfEqualValuesStays) {
  Device device;
  const std::vector<float> values = RandomValues(3 * 70, 1);
  const DeviceMatrix x(device, {3, 70, DType::kF32, 1}, values);
  const DeviceMatrix average(device, {3, 70, DType::kF32, 2}, values);
  MovingAverage(device, x.view(), 0.9, average.view());
  EXPECT_EQ(average.values(), values);
}

// Squares are exact in double, and n additions err by n 2^-53 at most.
TEST(ElementwiseTest, SumsSquaresOfManyBlocks) {
  Device device;
  for (const MatrixShape& shape :
       {kShapes[0], kShapes[2], kShapes[4], kShapes[5], MatrixShape{9, 5000, DType::kF32, 0},
        MatrixShape{2, 9000, DType::kF32, 1}}) {
    const std::vector<float> values = RandomValues(shape.rows * shape.cols, 1);
    const DeviceMatrix x(device, shape, values);
    double expected = 0;
    for (const float value : values) expected += double{value} * value;
    const double sum = SumOfSquares(device, x.view());
    EXPECT_NEAR(sum, expected, 2 * static_cast<double>(values.size()) * 0x1p-53 * expected);
    cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kShuffled, 1);
    EXPECT_EQ(SumOfSquares(device, x.view()), sum);
    cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward);
  }
}

}  // namespace
}  // namespace hippodrome::cuda::elementwise_test
