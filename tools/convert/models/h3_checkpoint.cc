#include "tools/convert/models/h3_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/base/status.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/printable.h"

namespace hippodrome {

absl::StatusOr<H3Checkpoint> H3Checkpoint::Make(std::unique_ptr<CheckpointSource> source) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : source->tensors()) names.push_back(tensor.name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<MappedTensor> mapped,
                              MapH3Names(names, source->lightning()));
  H3Checkpoint checkpoint;
  checkpoint.source_ = std::move(source);
  for (const MappedTensor& tensor : mapped) {
    HIPPODROME_RETURN_IF_ERROR(checkpoint.Add(tensor));
  }
  return checkpoint;
}

absl::Status H3Checkpoint::Add(const MappedTensor& mapped) {
  const SourceTensor& tensor = source_->tensors()[mapped.source];
  if (!tensor.is_float) {
    return InvalidArgument("tensor '" + Printable(tensor.name) + "' is of type " + tensor.type +
                           "; expected F32, F16, BF16 or F64");
  }
  std::vector<int64_t> shape = tensor.shape;
  if (mapped.parts > 1) {
    if (shape.empty() || shape[0] % mapped.parts != 0) {
      return InvalidArgument("tensor '" + Printable(tensor.name) + "' has shape " +
                             ShapeText(shape) + "; expected rows in " +
                             std::to_string(mapped.parts) + " equal parts");
    }
    shape[0] /= mapped.parts;
  }
  shapes_.emplace(mapped.name, std::move(shape));
  mapped_.emplace(mapped.name, mapped);
  return absl::OkStatus();
}

absl::Status H3Checkpoint::Read(const std::string& name, uint64_t first, std::span<float> out) {
  const MappedTensor& mapped = mapped_.at(name);
  const uint64_t part = source_->tensors()[mapped.source].elements / mapped.parts;
  return source_->Read(mapped.source, part * mapped.part + first, out);
}

absl::Status H3Checkpoint::CheckTiedHead() {
  const auto head = mapped_.find(kHead);
  if (head == mapped_.end()) return absl::OkStatus();
  const size_t words = mapped_.at(kWordEmbeddings).source;
  if (source_->Same(head->second.source, words)) return absl::OkStatus();
  constexpr uint64_t kChunk = uint64_t{1} << 20;
  const uint64_t elements = source_->tensors()[words].elements;
  std::vector<float> a;
  std::vector<float> b;
  for (uint64_t first = 0; first < elements; first += kChunk) {
    a.resize(std::min(kChunk, elements - first));
    b.resize(a.size());
    HIPPODROME_RETURN_IF_ERROR(source_->Read(words, first, a));
    HIPPODROME_RETURN_IF_ERROR(source_->Read(head->second.source, first, b));
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) {
      return InvalidArgument(
          "lm_head.weight differs from the embedding; heads that are not tied are not supported");
    }
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
