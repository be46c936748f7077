// The five published H3 models.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_H3_PRESETS_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_H3_PRESETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/config/config.h"

namespace hippodrome {

// "h3-125m|h3-355m|..", for usage texts.
const std::string& H3PresetNames();

// Errors: kInvalidArgument listing the names.
absl::StatusOr<H3Config> H3Preset(const std::string& name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_H3_PRESETS_H_
