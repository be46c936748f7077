// The state-space models of an H3 layer, from checkpoint to backend.
#ifndef HIPPODROME_ENGINE_MODELS_H3_STATE_SPACE_H_
#define HIPPODROME_ENGINE_MODELS_H3_STATE_SPACE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/config.h"
#include "kernels/backend.h"

namespace hippodrome {

// The stored parameters of the shift and the diagonal SSM of one layer, in host memory. Valid while
// their source lives, if that keeps them.
struct StateSpaceParameters {
  HostFloats shift_b, shift_c, shift_d;            // [d, N], [1, d, N], [d]
  HostFloats d, log_dt, inv_a_real, a_imag, b, c;  // see H3Parameters

  // A view for the backend; valid while this lives.
  H3Parameters View(const H3Config& config) const;
};

// Reads `prefix`ssm_k_kernel.*, `prefix`kernel.*, `prefix`D and `prefix`ssm_k_D. Errors name the
// tensor; values that are not finite are refused.
absl::StatusOr<StateSpaceParameters> ReadStateSpace(WeightsSource& source, const H3Config& config,
                                                    const std::string& prefix);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_H3_STATE_SPACE_H_
