// The configuration of a BiGS checkpoint: what the user says, completed by what the tensors say.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_DECIDE_BIGS_CONFIG_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_DECIDE_BIGS_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "tools/convert/models/shape_map.h"

namespace hippodrome {

struct BigsHints {
  std::string config_json;        // text of a config.json, or empty; keys may be missing
  std::string preset;             // see BigsPreset(), or empty
  int64_t attention_heads = 0;    // 0: not given
  std::string layer_gelu;         // "erf", "tanh", or empty: from the config, else by the source
  std::optional<int64_t> pad_to;  // 0: not at all; none: from the config, else the longest input
  bool flax = false;              // the source: its layers' GELU was tanh, PyTorch's is erf
};

// Keys that the user leaves out (sizes, the kind of layers, the class, the number of labels) are
// taken from `shapes`, which are not checked against the rest. Errors: kInvalidArgument naming the
// tensor or the key; what cannot be told from tensors (the number of attention heads, a classifier
// with one output) is refused with advice.
absl::StatusOr<BigsConfig> DecideBigsConfig(const ShapeMap& shapes, const BigsHints& hints);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_DECIDE_BIGS_CONFIG_H_
