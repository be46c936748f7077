#include "engine/models/encoder_norm.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<EncoderNorm> EncoderNorm::Load(const WeightsReader& reader,
                                              const std::string& prefix, int64_t size,
                                              double epsilon) {
  EncoderNorm norm;
  HIPPODROME_ASSIGN_OR_RETURN(norm.gamma_, reader.Row({prefix + "weight"}, size));
  HIPPODROME_ASSIGN_OR_RETURN(norm.beta_, reader.Row({prefix + "bias"}, size));
  norm.epsilon_ = epsilon;
  return norm;
}

}  // namespace hippodrome
