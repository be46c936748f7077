// A .safetensors file as a source of tensors.
#ifndef HIPPODROME_TOOLS_CONVERT_SAFETENSORS_SOURCE_H_
#define HIPPODROME_TOOLS_CONVERT_SAFETENSORS_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"

namespace hippodrome {

// Errors: as SafetensorsFile::Open.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenSafetensorsSource(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_SAFETENSORS_SOURCE_H_
