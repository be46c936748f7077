#include "kernels/cpu/base/tensor_memory.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

template <typename T>
void CopyRowsIn(std::span<const T> values, T* data, const Tensor& dst) {
  assert(static_cast<int64_t>(values.size()) == dst.rows * dst.cols);
  for (int64_t r = 0; r < dst.rows; ++r) {
    std::copy_n(values.data() + r * dst.cols, dst.cols, data + r * dst.stride);
  }
}

template <typename T>
void CopyRowsOut(const T* data, const Tensor& src, std::span<T> values) {
  assert(static_cast<int64_t>(values.size()) == src.rows * src.cols);
  for (int64_t r = 0; r < src.rows; ++r) {
    std::copy_n(data + r * src.stride, src.cols, values.data() + r * src.cols);
  }
}

}  // namespace

OwnedTensor NewMatrix(int64_t rows, int64_t cols, DType dtype) {
  assert(dtype == DType::kF32 || dtype == DType::kI32);
  assert(rows >= 0 && cols >= 0);
  std::shared_ptr<void> memory = AllocateZeroed(static_cast<size_t>(rows * cols) * SizeOf(dtype));
  return {{memory.get(), dtype, rows, cols, cols}, memory};
}

void CopyIn(std::span<const float> values, Tensor dst) { CopyRowsIn(values, F32Row(dst, 0), dst); }

void CopyIn(std::span<const int32_t> values, Tensor dst) {
  CopyRowsIn(values, I32Row(dst, 0), dst);
}

void CopyOut(Tensor src, std::span<float> values) { CopyRowsOut(F32Row(src, 0), src, values); }

void CopyOut(Tensor src, std::span<int32_t> values) { CopyRowsOut(I32Row(src, 0), src, values); }

}  // namespace hippodrome::cpu
