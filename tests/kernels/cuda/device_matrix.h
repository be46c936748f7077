// Matrices in device memory for kernel tests.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_

#include <vector>

#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {

struct MatrixShape {
  int64_t rows;
  int64_t cols;
  DType dtype = DType::kF32;
  // Rows are this many elements apart, and start as many after a border of 256 bytes.
  int64_t gap = 0;
};

// A matrix whose surroundings are zero, and stay so.
class DeviceMatrix {
 public:
  DeviceMatrix(Device& device, const MatrixShape& shape)
      : device_(device),
        memory_(NewMatrix(device, shape.rows + 1, shape.cols + shape.gap, shape.dtype)),
        view_(memory_.view.Rows(0, shape.rows).Cols(shape.gap, shape.cols)) {}
  DeviceMatrix(Device& device, const MatrixShape& shape, const std::vector<float>& values)
      : DeviceMatrix(device, shape) {
    CopyIn(device, values, view_);
  }

  Tensor view() const { return view_; }
  std::vector<float> values() const {
    std::vector<float> out(static_cast<size_t>(view_.rows * view_.cols));
    CopyOut(device_, view_, std::span<float>(out));
    return out;
  }
  // Whether nothing was written outside the view.
  bool SurroundingsAreZero() const {
    std::vector<float> all(static_cast<size_t>(memory_.view.rows * memory_.view.cols));
    CopyOut(device_, memory_, std::span<float>(all));
    const int64_t gap = memory_.view.cols - view_.cols;
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / memory_.view.cols;
      const int64_t col = static_cast<int64_t>(i) % memory_.view.cols;
      if ((row >= view_.rows || col < gap) && all[i] != 0) return false;
    }
    return true;
  }

 private:
  Device& device_;
  OwnedTensor memory_;
  Tensor view_;
};

// x as an element of `dtype` holds it.
inline float Stored(DType dtype, float x) { return dtype == DType::kBF16 ? ToFloat(ToBF16(x)) : x; }

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_
