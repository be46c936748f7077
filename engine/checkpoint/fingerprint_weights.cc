#include "engine/checkpoint/fingerprint_weights.h"

#include <fmt/format.h>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors_header.h"

namespace hippodrome {

FingerprintWeights::FingerprintWeights(WeightsSource& source, std::string_view config)
    : source_(source) {
  checksum_.Add(config);
}

absl::StatusOr<TensorView> FingerprintWeights::Get(const std::string& name,
                                                   const std::vector<int64_t>& shape) {
  HIPPODROME_ASSIGN_OR_RETURN(TensorView tensor, source_.Get(name, shape));
  checksum_.Add(fmt::format("\n{} {} {}\n", name, Name(tensor.dtype), DimensionsText(shape)));
  checksum_.Add(tensor.data);
  return tensor;
}

}  // namespace hippodrome
