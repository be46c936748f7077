// A block turns a square in shared memory.
#include "kernels/cuda/base/transpose.h"

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kTransposeWarps = 8;

template <typename X, typename Y>
struct TransposeArguments {
  Elements<const X> x;
  int64_t x_rows;
  Elements<Y> y;
  int64_t y_rows;
  int64_t y_cols;
};

// Blocks: (columns of x / kWarp, columns of y / kWarp), rounded up.
template <typename X, typename Y>
__global__ void __launch_bounds__(kTransposeWarps* kWarp)
    TransposeKernel(TransposeArguments<X, Y> a) {
  __shared__ float square[kWarp][kWarp + 1];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t x_column = int64_t{blockIdx.x} * kWarp;
  const int64_t x_row = int64_t{blockIdx.y} * kWarp;
  for (int i = warp; i < kWarp; i += kTransposeWarps) {
    const bool exists = x_row + i < a.x_rows && x_column + lane < a.y_rows;
    square[i][lane] = exists ? Widen(a.x.At(x_row + i, x_column + lane)) : 0.0f;
  }
  __syncthreads();
  if (x_row + lane >= a.y_cols) return;
  for (int i = warp; i < kWarp; i += kTransposeWarps) {
    if (x_column + i >= a.y_rows) return;
    a.y.At(x_column + i, x_row + lane) = FromFloat<Y>(square[lane][i]);
  }
}

template <typename X, typename Y>
void Turn(Device& device, const Tensor& x, const Tensor& y) {
  const auto squares = [](int64_t size) {
    return static_cast<unsigned>((size + kWarp - 1) / kWarp);
  };
  Launch(
      device, "transpose", TransposeKernel<X, Y>,
      {.blocks = dim3(squares(y.rows), squares(y.cols)), .threads = dim3(kTransposeWarps * kWarp)},
      TransposeArguments<X, Y>{ElementsOf<const X>(x), x.rows, ElementsOf<Y>(y), y.rows, y.cols});
}

template <typename X>
void TurnFrom(Device& device, const Tensor& x, const Tensor& y) {
  if (y.dtype == DType::kBF16) {
    Turn<X, BF16>(device, x, y);
  } else {
    Turn<X, float>(device, x, y);
  }
}

}  // namespace

void Transpose(Device& device, Tensor x, Tensor y) {
  assert(x.cols == y.rows && x.rows <= y.cols);
  if (y.rows == 0 || y.cols == 0) return;
  if (x.dtype == DType::kBF16) {
    TurnFrom<BF16>(device, x, y);
  } else {
    TurnFrom<float>(device, x, y);
  }
}

}  // namespace hippodrome::cuda
