#include "tools/convert/strided_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

template <typename Stored, typename Function>
void ConvertEach(std::span<const std::byte> raw, std::span<float> out, Function to_float) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = to_float(value);
  }
}

// Walks the storage indices of a view in row-major order.
class IndexWalk {
 public:
  IndexWalk(const TorchTensor& tensor, uint64_t first)
      : tensor_(tensor), index_(tensor.offset), counters_(tensor.shape.size()) {
    for (size_t k = counters_.size(); k-- > 0;) {
      const auto size = static_cast<uint64_t>(tensor.shape[k]);
      counters_[k] = first % size;
      first /= size;
      index_ += counters_[k] * static_cast<uint64_t>(tensor.strides[k]);
    }
  }

  uint64_t index() const { return index_; }

  void Next() {
    for (size_t k = counters_.size(); k-- > 0;) {
      const auto stride = static_cast<uint64_t>(tensor_.strides[k]);
      index_ += stride;
      if (++counters_[k] < static_cast<uint64_t>(tensor_.shape[k])) return;
      index_ -= counters_[k] * stride;
      counters_[k] = 0;
    }
  }

 private:
  const TorchTensor& tensor_;
  uint64_t index_;
  std::vector<uint64_t> counters_;
};

}  // namespace

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF64;
}

void ConvertToFloat(DType dtype, std::span<const std::byte> raw, std::span<float> out) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out.data(), raw.data(), out.size_bytes());
      return;
    case DType::kF16:
      return ConvertEach<uint16_t>(raw, out, HalfToFloat);
    case DType::kBF16:
      return ConvertEach<uint16_t>(raw, out, [](uint16_t bits) { return ToFloat(BF16{bits}); });
    case DType::kF64:
      return ConvertEach<double>(raw, out, [](double x) { return static_cast<float>(x); });
    default:
      std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

absl::Status StridedReader::Load(const TorchStorage& storage, uint64_t begin, uint64_t count) {
  buffer_.resize(count * storage.element_size);
  return storages_.Read(storage.key, begin * storage.element_size, buffer_);
}

absl::Status StridedReader::ReadContiguous(const TorchTensor& tensor, uint64_t first,
                                           std::span<float> out) {
  const TorchStorage& storage = tensor.storage;
  const size_t window = buffer_bytes_ / storage.element_size;
  for (size_t done = 0; done < out.size();) {
    const size_t count = std::min(window, out.size() - done);
    HIPPODROME_RETURN_IF_ERROR(Load(storage, tensor.offset + first + done, count));
    ConvertToFloat(*storage.dtype, buffer_, out.subspan(done, count));
    done += count;
  }
  return absl::OkStatus();
}

// Slides a window over the part of the storage that `out` touches and picks what lies in it.
absl::Status StridedReader::ReadStrided(const TorchTensor& tensor, uint64_t first,
                                        std::span<float> out) {
  const TorchStorage& storage = tensor.storage;
  uint64_t low = std::numeric_limits<uint64_t>::max();
  uint64_t high = 0;
  IndexWalk bounds(tensor, first);
  for (size_t i = 0; i < out.size(); ++i, bounds.Next()) {
    low = std::min(low, bounds.index());
    high = std::max(high, bounds.index());
  }
  const uint64_t window = buffer_bytes_ / storage.element_size;
  for (uint64_t begin = low; begin <= high; begin += window) {
    const uint64_t count = std::min(window, high - begin + 1);
    HIPPODROME_RETURN_IF_ERROR(Load(storage, begin, count));
    IndexWalk walk(tensor, first);
    for (size_t i = 0; i < out.size(); ++i, walk.Next()) {
      const uint64_t at = walk.index() - begin;  // wraps to a large number before the window
      if (at >= count) continue;
      const std::span<const std::byte> raw(buffer_.data() + at * storage.element_size,
                                           storage.element_size);
      ConvertToFloat(*storage.dtype, raw, out.subspan(i, 1));
    }
  }
  return absl::OkStatus();
}

absl::Status StridedReader::Read(const TorchTensor& tensor, uint64_t first, std::span<float> out) {
  if (out.empty()) return absl::OkStatus();
  return tensor.contiguous() ? ReadContiguous(tensor, first, out) : ReadStrided(tensor, first, out);
}

}  // namespace hippodrome
