#include "kernels/cpu/gemm/product_inputs.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/gemm/microkernel_amx.h"

namespace hippodrome::cpu {
namespace {

int64_t Steps(int64_t in) { return (in + kAmxDepth - 1) / kAmxDepth; }

// The type of product inputs beside `weights`.
DType InputType(DType weights) {
  const bool rounds = weights == DType::kBF16 || weights == DType::kI8;
  if (!rounds || ChosenKernel(DotKernel::kBest, weights) == DotKernel::kPlain) return DType::kF32;
  return weights;
}

}  // namespace

int64_t InputStride(int64_t in) { return (Steps(in) | 1) * kAmxDepth; }

OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType weights) {
  const DType type = InputType(weights);
  if (type == DType::kF32) return NewMatrix(rows, cols, type);
  const int64_t groups = QuantizedGroups(cols, DType::kI8);
  const int64_t stride =
      type == DType::kBF16 ? InputStride(cols) : groups * static_cast<int64_t>(sizeof(Int8Group));
  const int64_t elements = (rows + kAmxRows) * stride;
  std::shared_ptr<void> memory = AllocateZeroed(static_cast<size_t>(elements) * SizeOf(type));
  return {{memory.get(), type, rows, cols, stride}, memory};
}

void RoundToSteps(const float* x, int64_t n, BF16* rounded) {
  RoundToBF16Dot(x, n, rounded);
  std::fill(rounded + n, rounded + Steps(n) * kAmxDepth, BF16{});
}

void StoreInputs(const float* x, const Tensor& inputs, int64_t row) {
  if (inputs.dtype == DType::kI8) return RoundToInt8(x, inputs.cols, GroupAt(inputs, row, 0));
  RoundToBF16Dot(x, inputs.cols, BF16Row(inputs, row));
}

void CopyGroupsIn(std::span<const float> values, const Tensor& dst) {
  assert(static_cast<int64_t>(values.size()) == dst.rows * dst.cols);
  for (int64_t row = 0; row < dst.rows; ++row) StoreInputs(&values[row * dst.cols], dst, row);
}

void CopyGroupsOut(const Tensor& src, std::span<float> values) {
  assert(static_cast<int64_t>(values.size()) == src.rows * src.cols);
  for (int64_t row = 0; row < src.rows; ++row) {
    for (int64_t c = 0; c < src.cols; ++c) {
      const Int8Group& group = *GroupAt(src, row, c / kInt8Group);
      values[row * src.cols + c] = group.scale * group.values[c % kInt8Group];
    }
  }
}

}  // namespace hippodrome::cpu
