// The parameters of a request of the Open Inference Protocol.
#ifndef HIPPODROME_SERVER_HANDLERS_INFERENCE_PARAMETERS_H_
#define HIPPODROME_SERVER_HANDLERS_INFERENCE_PARAMETERS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "hippodrome/v1/encoding.pb.h"
#include "hippodrome/v1/generation.pb.h"
#include "inference/open_inference.pb.h"

namespace hippodrome {

// What requests to encoders may ask for beside their inputs.
struct EncoderParameters {
  v1::Truncate truncate;
  bool raw_scores = false;
  bool normalize = true;
  std::optional<int64_t> top_k;
};

// These check types; ranges are for the handlers. Errors: kInvalidArgument naming the parameter.
// That of one that is not `known`.
absl::Status RefuseOtherParameters(const inference::ModelInferRequest& request,
                                   std::span<const char* const> known);
inline absl::Status RefuseOtherParameters(const inference::ModelInferRequest& request,
                                          std::initializer_list<const char*> known) {
  return RefuseOtherParameters(request, std::span(known.begin(), known.size()));
}
// Those of all tasks together.
absl::StatusOr<EncoderParameters> ReadEncoderParameters(
    const inference::ModelInferRequest& request);
// All of the result but its prompt and model. Others than its own are refused.
absl::StatusOr<v1::GenerateRequest> ReadGenerateParameters(
    const inference::ModelInferRequest& request);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_INFERENCE_PARAMETERS_H_
