// A matrix that lives in a backend's memory, as a view.
#ifndef HIPPODROME_KERNELS_TENSOR_H_
#define HIPPODROME_KERNELS_TENSOR_H_

#include <cassert>
#include <cstdint>
#include <memory>

#include "kernels/dtype.h"

namespace hippodrome {

// A handle to `rows` x `cols` elements, row r starting `r * stride` elements after `data`. Only the
// backend that made it may dereference `data` (it may be device memory); everyone may slice. A
// Tensor owns nothing: it is valid while the OwnedTensor that it came from lives.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  // Rows [begin, begin + count).
  Tensor Rows(int64_t begin, int64_t count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= rows);
    return {At(begin * stride), dtype, count, cols, stride};
  }
  // Columns [begin, begin + count).
  Tensor Cols(int64_t begin, int64_t count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= cols);
    return {At(begin), dtype, rows, count, stride};
  }

 private:
  void* At(int64_t elements) const {
    return static_cast<char*>(data) + elements * static_cast<int64_t>(SizeOf(dtype));
  }
};

// A tensor together with its memory, which is given back on destruction. Must not outlive the
// backend that made it.
struct OwnedTensor {
  Tensor view;
  std::shared_ptr<void> memory;

  operator Tensor() const { return view; }  // NOLINT(google-explicit-constructor)
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TENSOR_H_
