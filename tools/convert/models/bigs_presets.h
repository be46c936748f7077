// The published BiGS models, by the longest input.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_PRESETS_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_PRESETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"

namespace hippodrome {

// "bigs-128|bigs-512|..", for usage texts.
const std::string& BigsPresetNames();

// The masked-LM model of that name. Errors: kInvalidArgument listing the names.
absl::StatusOr<BigsConfig> BigsPreset(const std::string& name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_PRESETS_H_
