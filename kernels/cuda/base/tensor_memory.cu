#include "kernels/cuda/base/tensor_memory.h"

#include <algorithm>
#include <vector>

namespace hippodrome::cuda {
namespace {

constexpr const char* kUpload = "upload";
constexpr const char* kDownload = "download";

bool RowsAreAdjacent(const Tensor& tensor) {
  return tensor.rows == 1 || tensor.stride == tensor.cols;
}

size_t RowBytes(const Tensor& tensor) {
  return static_cast<size_t>(tensor.cols) * SizeOf(tensor.dtype);
}

size_t StrideBytes(const Tensor& tensor) {
  return static_cast<size_t>(tensor.stride) * SizeOf(tensor.dtype);
}

// `from`: rows of dst.cols elements of dst's type.
void CopyRowsIn(Device& device, const void* from, const Tensor& dst) {
  const size_t rows = static_cast<size_t>(dst.rows);
  if (rows == 0 || dst.cols == 0) return;
  if (RowsAreAdjacent(dst)) {
    CopyToDevice(device, from, dst.data, rows * RowBytes(dst));
    return;
  }
  device.Note(cudaMemcpy2DAsync(dst.data, StrideBytes(dst), from, RowBytes(dst), RowBytes(dst),
                                rows, cudaMemcpyHostToDevice, device.stream()),
              kUpload);
  // Whether the rows have left the host's memory is the driver's choice.
  device.Finish(kUpload);
}

// `to`: rows of src.cols elements of src's type.
void CopyRowsOut(Device& device, const Tensor& src, void* to) {
  if (src.rows > 0 && src.cols > 0) {
    device.Note(
        cudaMemcpy2DAsync(to, RowBytes(src), src.data, std::max(StrideBytes(src), RowBytes(src)),
                          RowBytes(src), static_cast<size_t>(src.rows), cudaMemcpyDeviceToHost,
                          device.stream()),
        kDownload);
  }
  device.Finish(kDownload);
}

}  // namespace

OwnedTensor NewMatrix(Device& device, int64_t rows, int64_t cols, DType dtype) {
  assert(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kI32);
  assert(rows >= 0 && cols >= 0);
  const size_t bytes = static_cast<size_t>(rows * cols) * SizeOf(dtype);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  return {{memory.get(), dtype, rows, cols, cols}, memory};
}

void CopyIn(Device& device, std::span<const float> values, Tensor dst) {
  assert(static_cast<int64_t>(values.size()) == dst.rows * dst.cols);
  if (dst.dtype == DType::kF32) {
    CopyRowsIn(device, values.data(), dst);
    return;
  }
  assert(dst.dtype == DType::kBF16);
  std::vector<BF16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), ToBF16);
  CopyRowsIn(device, rounded.data(), dst);
}

void CopyIn(Device& device, std::span<const int32_t> values, Tensor dst) {
  assert(dst.dtype == DType::kI32);
  assert(static_cast<int64_t>(values.size()) == dst.rows * dst.cols);
  CopyRowsIn(device, values.data(), dst);
}

void CopyOut(Device& device, Tensor src, std::span<float> values) {
  assert(static_cast<int64_t>(values.size()) == src.rows * src.cols);
  if (src.dtype == DType::kF32) {
    CopyRowsOut(device, src, values.data());
    return;
  }
  assert(src.dtype == DType::kBF16);
  std::vector<BF16> stored(values.size());
  CopyRowsOut(device, src, stored.data());
  std::transform(stored.begin(), stored.end(), values.begin(), ToFloat);
}

void CopyOut(Device& device, Tensor src, std::span<int32_t> values) {
  assert(src.dtype == DType::kI32);
  assert(static_cast<int64_t>(values.size()) == src.rows * src.cols);
  CopyRowsOut(device, src, values.data());
}

}  // namespace hippodrome::cuda
