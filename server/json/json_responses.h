// Results to HTTP response bodies.
#ifndef HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_
#define HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "hippodrome/v1/generation.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "server/batching/token_stream.h"
#include "server/status_map.h"

namespace hippodrome {

// What all parts of one completion have in common.
struct CompletionHead {
  std::string id;  // "cmpl-..."
  std::string model;
  int64_t created = 0;  // Unix seconds
};

// The whole answer: one choice and one part of the usage per prompt.
std::string CompletionBody(const CompletionHead& head, std::span<const StreamUpdate> choices);
// One streamed event: what is new of choice `index`.
std::string CompletionEvent(const CompletionHead& head, int64_t index, const StreamUpdate& update);
// The event that ends a stream with usage: no choices.
std::string UsageEvent(const CompletionHead& head, std::span<const StreamUpdate> choices);

// {"error": {"message", "type", "code", "param"}}; for TGI {"error", "error_type"}, both texts, and
// for KServe {"error"}.
std::string ErrorBody(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);
// The same for errors that only HTTP has; `code` in OpenAI's sense.
std::string ErrorBody(int http_status, const std::string& code, const std::string& message);

// OpenAI's list of models, and one of them.
std::string ModelsBody(const v1::ListModelsResponse& models);
std::string ModelBody(const v1::Model& model);
std::string TokenizeBody(const v1::TokenizeResponse& response, const v1::Model& model);
std::string DetokenizeBody(const v1::DetokenizeResponse& response);
// {"NAME": "VALUE"}
std::string TextBody(const std::string& name, const std::string& value);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_
