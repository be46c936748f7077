// The SSM of one direction of an encoder layer, from checkpoint to backend.
#ifndef HIPPODROME_ENGINE_MODELS_DIAGONAL_SSM_H_
#define HIPPODROME_ENGINE_MODELS_DIAGONAL_SSM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/bigs_config.h"
#include "kernels/backend.h"

namespace hippodrome {

// The stored parameters, in host memory. Valid while their source lives, if that keeps them.
struct DiagonalSsm {
  HostFloats a_real, a_imag, c, log_step, d;  // see DiagonalSsmParameters

  // A view for the backend; valid while this lives.
  DiagonalSsmParameters View(const BigsConfig& config) const;
};

// Reads `prefix`kernel.* and `prefix`D ("bigs.encoder.layer.0.fs4."). Errors name the tensor;
// values that are not finite are refused.
absl::StatusOr<DiagonalSsm> ReadDiagonalSsm(WeightsSource& source, const BigsConfig& config,
                                            const std::string& prefix);

// The same, prepared for the model's longest input.
absl::StatusOr<std::unique_ptr<LongConvWeights>> LoadDiagonalSsm(const WeightsReader& reader,
                                                                 const BigsConfig& config,
                                                                 const std::string& prefix);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_DIAGONAL_SSM_H_
