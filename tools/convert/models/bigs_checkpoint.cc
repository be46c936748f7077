#include "tools/convert/models/bigs_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {

absl::StatusOr<BigsCheckpoint> BigsCheckpoint::Make(std::unique_ptr<CheckpointSource> source) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : source->tensors()) names.push_back(tensor.name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<BigsTensor> mapped,
                              MapBigsNames(names, source->flax()));
  BigsCheckpoint checkpoint;
  checkpoint.source_ = std::move(source);
  for (const BigsTensor& tensor : mapped) {
    HIPPODROME_RETURN_IF_ERROR(checkpoint.Add(tensor));
  }
  return checkpoint;
}

absl::Status BigsCheckpoint::Add(const BigsTensor& mapped) {
  const SourceTensor& tensor = source_->tensors()[mapped.source];
  if (!tensor.is_float) {
    return InvalidArgument("tensor '" + Printable(tensor.name) + "' is of type " +
                           Printable(tensor.type) + "; expected F32, F16, BF16 or F64");
  }
  std::vector<int64_t> shape = tensor.shape;
  if (mapped.transposed) {
    if (shape.size() != 2) {
      return InvalidArgument("tensor '" + Printable(tensor.name) + "' has shape " +
                             ShapeText(shape) + "; expected a matrix");
    }
    std::swap(shape[0], shape[1]);
  }
  shapes_.emplace(mapped.name, std::move(shape));
  mapped_.emplace(mapped.name, mapped);
  return absl::OkStatus();
}

absl::Status BigsCheckpoint::Read(const std::string& name, uint64_t first, std::span<float> out) {
  const BigsTensor& mapped = mapped_.at(name);
  return mapped.transposed ? ReadTransposed(mapped.source, first, out)
                           : source_->Read(mapped.source, first, out);
}

// Reads one row of the file's [in, out] at a time, as far as it lies in the rows that `out` covers.
absl::Status BigsCheckpoint::ReadTransposed(size_t source, uint64_t first, std::span<float> out) {
  if (out.empty()) return absl::OkStatus();
  const std::vector<int64_t>& shape = source_->tensors()[source].shape;
  const auto columns = static_cast<uint64_t>(shape[0]);
  const auto rows = static_cast<uint64_t>(shape[1]);
  const uint64_t top = first / columns;
  const uint64_t bottom = (first + out.size() - 1) / columns;
  column_.resize(bottom - top + 1);
  for (uint64_t j = 0; j < columns; ++j) {
    HIPPODROME_RETURN_IF_ERROR(source_->Read(source, j * rows + top, column_));
    for (uint64_t i = top; i <= bottom; ++i) {
      const uint64_t at = i * columns + j - first;  // wraps to a large number before `first`
      if (at < out.size()) out[at] = column_[i - top];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BigsCheckpoint::Equal(const std::string& a, const std::string& b) {
  const size_t source = mapped_.at(a).source;
  if (source_->Same(source, mapped_.at(b).source)) return true;
  constexpr uint64_t kChunk = uint64_t{1} << 20;
  const uint64_t elements = source_->tensors()[source].elements;
  std::vector<float> x;
  std::vector<float> y;
  for (uint64_t first = 0; first < elements; first += kChunk) {
    x.resize(std::min(kChunk, elements - first));
    y.resize(x.size());
    HIPPODROME_RETURN_IF_ERROR(Read(a, first, x));
    HIPPODROME_RETURN_IF_ERROR(Read(b, first, y));
    if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace hippodrome
