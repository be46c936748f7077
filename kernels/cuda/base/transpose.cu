#include "kernels/cuda/base/transpose.h"

#include "kernels/cuda/base/transpose.cuh"

namespace hippodrome::cuda {
namespace {

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
