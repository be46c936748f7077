// From a model directory to something that can be served.
#ifndef HIPPODROME_SERVER_LOAD_MODEL_H_
#define HIPPODROME_SERVER_LOAD_MODEL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/encoder.h"
#include "engine/generator.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"
#include "server/handlers/served_model.h"

namespace hippodrome {

struct LoadOptions {
  std::optional<DType> weights;  // of kWeightTypes; by default as LoadDecoderDirectory()
  DeviceChoice device = DeviceChoice::kAuto;
  CpuOptions cpu;              // a pool makes all models loaded with it share its threads
  GeneratorOptions generator;  // of decoders; its draft model is the one in the next directory
  std::string draft;           // empty: there is none
  EncoderOptions encoder;
  bool pad_to_max = false;  // encoder.pad_to is each model's max_position_embeddings
};

// Called after each layer with the layers loaded so far and in all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// Loads the model in `directory`, of either family, on a backend of its own. Errors name the file,
// the field or tensor at fault, and what was expected; kUnavailable: the device cannot be had. A
// pool that has cores of its own does not keep the calling thread on one (ThreadPool::LetGo()).
absl::StatusOr<ModelParts> LoadModel(const std::string& name, const std::string& directory,
                                     const LoadOptions& options, const LoadProgress& progress = {});

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_LOAD_MODEL_H_
