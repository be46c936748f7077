// The part of a conversion that differs between the families, and what its two sides share.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_PREPARE_MODEL_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_PREPARE_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/convert.h"

namespace hippodrome {

// The tensors of a checkpoint under the names of the published code. One thread at a time.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  // Elements [first, first + out.size()) of the tensor, row by row. REQUIRES: they exist. Errors:
  // kInvalidArgument for a damaged file.
  virtual absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) = 0;
};

// Whether two tensors of `elements` elements are equal in every one. Errors: of reading.
absl::StatusOr<bool> EqualElements(TensorReader& tensors, const std::string& a,
                                   const std::string& b, uint64_t elements);

// Error unless `tensor` can be read as f32.
absl::Status CheckFloat(const SourceTensor& tensor);

// A checkpoint that was checked in full and fits its configuration.
struct PreparedModel {
  std::unique_ptr<TensorReader> tensors;
  std::vector<TensorSpec> specs;  // to be written in this order; of a type of weights
  std::string config_json;        // of the model directory
  std::string summary;            // "12 layers, d_model 768"
  int64_t vocab_size = 0;
  int64_t parameters = 0;
};

// `config_json`: what the user's config.json says, or empty. Errors: kInvalidArgument naming the
// tensor or the field at fault.
absl::StatusOr<PreparedModel> PrepareH3(std::unique_ptr<CheckpointSource> source,
                                        const std::string& config_json,
                                        const ConvertOptions& options);
absl::StatusOr<PreparedModel> PrepareBigs(std::unique_ptr<CheckpointSource> source,
                                          const std::string& config_json,
                                          const ConvertOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_PREPARE_MODEL_H_
