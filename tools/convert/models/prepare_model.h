// The part of a conversion that differs between the families.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_PREPARE_MODEL_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_PREPARE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/convert.h"
#include "tools/convert/tensor_reader.h"

namespace hippodrome {

// A checkpoint that was checked in full and fits its configuration.
struct PreparedModel {
  std::unique_ptr<TensorReader> tensors;
  std::vector<TensorSpec> specs;  // to be written in this order
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
