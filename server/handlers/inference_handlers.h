// The Open Inference Protocol over the handlers of encoders and decoders, without a transport.
#ifndef HIPPODROME_SERVER_HANDLERS_INFERENCE_HANDLERS_H_
#define HIPPODROME_SERVER_HANDLERS_INFERENCE_HANDLERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "inference/open_inference.pb.h"
#include "server/handlers/handlers.h"
#include "server/handlers/pending_answer.h"

namespace hippodrome {

// Of every model.
inline constexpr char kModelVersion[] = "1";

// Errors are those of open_inference.proto. Thread-safe.
class InferenceHandlers {
 public:
  // `handlers` must outlive these and all answers.
  explicit InferenceHandlers(Handlers& handlers) : handlers_(handlers) {}

  // OK where the model and its version exist, and the server is ready.
  absl::Status ModelReady(const std::string& name, const std::string& version) const;
  inference::ServerMetadataResponse ServerMetadata() const;
  absl::StatusOr<inference::ModelMetadataResponse> ModelMetadata(const std::string& name,
                                                                 const std::string& version) const;
  // Outputs are raw where the inputs are. Decoders answer with the whole text.
  Answer<inference::ModelInferResponse> Infer(const inference::ModelInferRequest& request,
                                              const Caller& caller);
  // What a request to a decoder asks for. kFailedPrecondition for an encoder.
  absl::StatusOr<v1::GenerateRequest> ToGenerate(const inference::ModelInferRequest& request) const;

 private:
  absl::StatusOr<v1::Model> FindModel(const std::string& name, const std::string& version) const;
  Answer<inference::ModelInferResponse> Generate(const inference::ModelInferRequest& request,
                                                 const Caller& caller);

  Handlers& handlers_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_INFERENCE_HANDLERS_H_
