// Tensors of a device: activations (f32 or bf16) and i32 indices in its memory.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_TENSOR_MEMORY_H_
#define HIPPODROME_KERNELS_CUDA_BASE_TENSOR_MEMORY_H_

#include <span>

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// A zeroed matrix of `dtype` (kF32, kBF16 or kI32) with adjacent rows, which starts at a multiple
// of 256 bytes. Throws DeviceError when there is not enough memory.
OwnedTensor NewMatrix(Device& device, int64_t rows, int64_t cols, DType dtype);

// Row-major `values` into a view whose rows may be apart; `values` may change after the call.
// dst: kF32 or kBF16 (rounded to nearest even) for floats, kI32 for integers. REQUIRES: sizes
// agree.
void CopyIn(Device& device, std::span<const float> values, Tensor dst);
void CopyIn(Device& device, std::span<const int32_t> values, Tensor dst);

// The other way. Waits for the device, and throws DeviceError if any of its work failed.
void CopyOut(Device& device, Tensor src, std::span<float> values);
void CopyOut(Device& device, Tensor src, std::span<int32_t> values);

// See Device::CopyToScratch().
template <typename Value>
const Value* CopyToScratch(Device& device, ScratchUse use, std::span<const Value> values) {
  return static_cast<const Value*>(device.CopyToScratch(use, values.data(), values.size_bytes()));
}

// Element (row, 0) of a view of elements of type T, in device memory.
template <typename T>
T* DeviceRow(const Tensor& tensor, int64_t row) {
  assert(SizeOf(tensor.dtype) == sizeof(T));
  return static_cast<T*>(tensor.data) + row * tensor.stride;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_TENSOR_MEMORY_H_
