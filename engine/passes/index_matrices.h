// Indices that every batch brings anew, in memory that stays.
#ifndef HIPPODROME_ENGINE_PASSES_INDEX_MATRICES_H_
#define HIPPODROME_ENGINE_PASSES_INDEX_MATRICES_H_

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

// All matrices of indices that a batch needs, in one copy: to a device each takes microseconds,
// whatever its size. Memory grows by powers of two to that of the largest batch, and is not
// allocated otherwise. Not thread-safe; the backend must outlive it.
class IndexMatrices {
 public:
  explicit IndexMatrices(SequenceBackend& backend) : backend_(backend) {}

  // Appends `values`, row-major, as [rows, values.size() / rows]. What it gives is the matrix's
  // number behind the next Upload(): from 0 on.
  size_t Add(std::span<const int32_t> values, int64_t rows = 1) {
    assert(std::ssize(values) % rows == 0);
    added_.push_back({std::ssize(values_), rows, std::ssize(values) / rows});
    values_.insert(values_.end(), values.begin(), values.end());
    values_.resize((values_.size() + kBorder - 1) / kBorder * kBorder);
    return added_.size() - 1;
  }

  // Copies what was added since the last call, whose matrices are gone. In the same memory, unless
  // it gives true: then there are none where a graph may look for them. Matrices of the same sizes
  // lie at the same places in it. `room`: for so many values memory is asked for, or more.
  bool Upload(int64_t room = 0) {
    // Where this throws, what was added is gone as well.
    uploaded_ = std::exchange(added_, {});
    const std::vector<int32_t> values = std::exchange(values_, {});
    const int64_t size = std::ssize(values);
    const bool moves = memory_.view.cols < size;
    if (moves) {
      memory_ = {};  // before the larger one
      const auto most = static_cast<uint64_t>(std::max(size, room));
      memory_ = backend_.NewIndices(1, static_cast<int64_t>(std::bit_ceil(most)));
    }
    if (size > 0) backend_.UploadIndices(values, memory_.view.Cols(0, size));
    return moves;
  }

  // Of the last Upload().
  Tensor operator[](size_t number) const {
    const Place& at = uploaded_[number];
    return {static_cast<int32_t*>(memory_.view.data) + at.first, DType::kI32, at.rows, at.cols,
            at.cols};
  }

 private:
  static constexpr size_t kBorder = 16;  // a matrix begins at whole lines of 64 bytes

  struct Place {
    int64_t first, rows, cols;
  };

  SequenceBackend& backend_;
  OwnedTensor memory_;  // kI32 [1, n]
  std::vector<int32_t> values_;
  std::vector<Place> added_, uploaded_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_INDEX_MATRICES_H_
