// The configuration of an H3 checkpoint: what its shapes say, and what they cannot.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_INFER_CONFIG_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_INFER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "tools/convert/models/shape_map.h"

namespace hippodrome {

// What the shapes say (lm_head.weight may be absent): all sizes, the attention layers, rotary_dim =
// 2 len(inv_freq), head_dim = d / len(D), n_ssm = rows of inv_A_real, d_state. Left open:
// attention_heads (0). vocab_size is 50257 for 50264 rows, else the rows. Errors: kInvalidArgument
// naming the tensor that is missing or of a wrong rank. Not every shape is checked; see
// CheckShapes().
absl::StatusOr<H3Config> InferConfig(const ShapeMap& shapes);

// What the user says about a checkpoint.
struct ConfigHints {
  std::string config_json;      // text of a config.json, or empty; keys may be missing
  std::string preset;           // see H3Preset(), or empty
  int64_t attention_heads = 0;  // 0: not given
};

// The complete configuration. Errors: kInvalidArgument when hints and shapes contradict each other,
// or when the number of attention heads stays unknown (with advice).
absl::StatusOr<H3Config> DecideConfig(const ShapeMap& shapes, const ConfigHints& hints);

// Checks that `shapes` are exactly the tensors of `config` (and a head of the embedding's shape).
// Errors: kInvalidArgument naming the first tensor that is missing, unknown or of a wrong shape.
absl::Status CheckShapes(const ShapeMap& shapes, const H3Config& config);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_INFER_CONFIG_H_
