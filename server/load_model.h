// From a model directory to something that can be served.
#ifndef HIPPODROME_SERVER_LOAD_MODEL_H_
#define HIPPODROME_SERVER_LOAD_MODEL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/generator.h"
#include "engine/models/hybrid_h3.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"
#include "server/served_model.h"

namespace hippodrome {

struct LoadOptions {
  std::optional<DType> weights;  // kF32 or kBF16; by default as stored
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;  // that do arithmetic on the CPU; 0: one per available core
  GeneratorOptions generator;
};

// Loads the model in `directory` on a backend of its own. Errors name the file, the field or tensor
// at fault, and what was expected; kUnavailable: the device cannot be had.
absl::StatusOr<ModelParts> LoadModel(const std::string& name, const std::string& directory,
                                     const LoadOptions& options,
                                     const HybridH3::Progress& progress = {});

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_LOAD_MODEL_H_
