// A checkpoint of any generation, seen as one of the current generation.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_H3_CHECKPOINT_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_H3_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/models/h3_names.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/tensor_reader.h"

namespace hippodrome {

// One thread at a time.
class H3Checkpoint : public TensorReader {
 public:
  // Errors: kInvalidArgument for names that cannot be mapped and tensors that are no floats.
  static absl::StatusOr<H3Checkpoint> Make(std::unique_ptr<CheckpointSource> source);

  // By current name.
  const ShapeMap& shapes() const { return shapes_; }
  uint64_t file_bytes() const { return source_->file_bytes(); }

  absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) override;

  // Error unless lm_head.weight is absent, shares the embedding's storage, or equals it in every
  // element. REQUIRES: equal shapes.
  absl::Status CheckTiedHead();

 private:
  absl::Status Add(const MappedTensor& mapped);

  std::unique_ptr<CheckpointSource> source_;
  std::map<std::string, MappedTensor> mapped_;
  ShapeMap shapes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_H3_CHECKPOINT_H_
