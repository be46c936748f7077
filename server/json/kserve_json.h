// Bodies of the Open Inference Protocol over HTTP, with its extensions for binary tensors and for
// generation.
#ifndef HIPPODROME_SERVER_JSON_KSERVE_JSON_H_
#define HIPPODROME_SERVER_JSON_KSERVE_JSON_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "inference/open_inference.pb.h"
#include "server/json/request_fields.h"

namespace hippodrome {

struct InferCall {
  inference::ModelInferRequest request;   // of all but its model; inputs have contents
  bool binary = false;                    // outputs are binary, ...
  std::map<std::string, bool> binary_of;  // ... but for those that say otherwise
};

struct InferBody {
  std::string body;
  std::optional<size_t> json_bytes;  // of JSON, where binary tensors follow
};

extern const RequestFields kInferFields;
extern const RequestFields kKServeGenerateFields;

// `json_bytes`: what comes before binary tensors, if there are any. Errors: kInvalidArgument naming
// the field, or the place of a syntax error.
absl::StatusOr<InferCall> ParseInfer(const std::string& body, std::optional<size_t> json_bytes);
// {"text_input": "a", "parameters": {...}}; parameters may stand beside "text_input" too.
absl::StatusOr<inference::ModelInferRequest> ParseKServeGenerate(const std::string& body);

// `response` has contents.
InferBody InferResponseBody(const InferCall& call, const inference::ModelInferResponse& response);
std::string ServerMetadataBody(const inference::ServerMetadataResponse& metadata);
std::string ModelMetadataBody(const inference::ModelMetadataResponse& metadata);
// {"live": true} and the like; `model` is left out where it is empty.
std::string FlagBody(const std::string& model, const char* flag, bool value);
// {"id", "model_name", "model_version", "text_output"}
std::string KServeTextBody(const inference::ModelInferRequest& request, const std::string& version,
                           const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_KSERVE_JSON_H_
