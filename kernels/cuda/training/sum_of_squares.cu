#include "kernels/cuda/training/sum_of_squares.cuh"

#include "kernels/cuda/base/elementwise.h"

namespace hippodrome::cuda {
namespace {

constexpr const char* kName = "sum_of_squares";

}  // namespace

double SumOfSquares(Device& device, Tensor x) {
  const ElementsShape shape = JoinedShape({x});
  if (shape.rows == 0 || shape.cols == 0) return 0;
  const int64_t blocks_of_row = (shape.cols + kSquareColumns - 1) / kSquareColumns;
  const int64_t blocks = shape.rows * blocks_of_row;
  // The total, and the parts.
  double* sums = static_cast<double*>(
      device.Scratch(ScratchUse::kSquares, static_cast<size_t>(blocks + 1) * sizeof(double)));
  Launch(device, kName, SquaresKernel,
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kSquareThreads)},
         ElementsOf<const float>(x), shape.cols, static_cast<unsigned>(blocks_of_row), sums + 1);
  Launch(device, kName, SumPartsKernel, {.blocks = dim3(1), .threads = dim3(kSquareThreads)},
         sums + 1, blocks, sums);
  double total = 0;
  device.Note(cudaMemcpyAsync(&total, sums, sizeof(total), cudaMemcpyDeviceToHost, device.stream()),
              kName);
  device.Finish(kName);
  return total;
}

}  // namespace hippodrome::cuda
