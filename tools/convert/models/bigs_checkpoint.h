// A BiGS checkpoint, PyTorch or Flax, under the published PyTorch names and layouts.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_CHECKPOINT_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/models/bigs_names.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/tensor_reader.h"

namespace hippodrome {

// One thread at a time.
class BigsCheckpoint : public TensorReader {
 public:
  // Errors: kInvalidArgument for names that cannot be mapped, tensors that are no floats, and Flax
  // kernels that are no matrices.
  static absl::StatusOr<BigsCheckpoint> Make(std::unique_ptr<CheckpointSource> source);

  const ShapeMap& shapes() const { return shapes_; }
  bool flax() const { return source_->flax(); }
  uint64_t file_bytes() const { return source_->file_bytes(); }

  absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) override;

  // Whether two tensors share their storage or are equal in every element. REQUIRES: they exist and
  // have equal shapes.
  absl::StatusOr<bool> Equal(const std::string& a, const std::string& b);

 private:
  absl::Status Add(const BigsTensor& tensor);
  absl::Status ReadTransposed(size_t source, uint64_t first, std::span<float> out);

  std::unique_ptr<CheckpointSource> source_;
  std::map<std::string, BigsTensor> mapped_;
  ShapeMap shapes_;
  std::vector<float> column_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_CHECKPOINT_H_
