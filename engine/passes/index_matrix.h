// Indices that every batch brings anew, in memory that stays.
#ifndef HIPPODROME_ENGINE_PASSES_INDEX_MATRIX_H_
#define HIPPODROME_ENGINE_PASSES_INDEX_MATRIX_H_

#include <bit>
#include <cstdint>
#include <span>

#include "kernels/backend.h"

namespace hippodrome {

// A matrix of indices of any shape, the last one that was uploaded. Memory grows by powers of two
// to that of the largest, and is not allocated otherwise. The backend must outlive it.
class IndexMatrix {
 public:
  explicit IndexMatrix(SequenceBackend& backend) : backend_(backend) {}

  // `values`, row-major, as [values.size() / cols, cols].
  void Upload(std::span<const int32_t> values, int64_t cols) {
    const auto size = static_cast<int64_t>(values.size());
    if (memory_.view.cols < size) {
      memory_ = {};  // before the larger one
      memory_ =
          backend_.NewIndices(1, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))));
    }
    view_ = {memory_.view.data, DType::kI32, size / cols, cols, cols};
    backend_.UploadIndices(values, view_);
  }

  Tensor view() const { return view_; }

 private:
  SequenceBackend& backend_;
  OwnedTensor memory_;  // kI32 [1, n]
  Tensor view_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_INDEX_MATRIX_H_
