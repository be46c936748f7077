// Results to HTTP response bodies.
#ifndef HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_
#define HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hippodrome/v1/generation.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "server/batching/token_stream.h"
#include "server/handlers/tokenizer_info.h"
#include "server/status_map.h"

namespace hippodrome {

// What all parts of one completion have in common.
struct CompletionHead {
  std::string id;  // "cmpl-..."
  std::string model;
  int64_t created = 0;  // Unix seconds
};

// One answer to a prompt, or the next piece of it.
struct CompletionChoice {
  int64_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;  // new ones
  StreamFinish finish = StreamFinish::kNone;
  nlohmann::ordered_json log_probabilities;  // of LogProbabilitiesJson, or null
};

// The whole answer. `state`: null where none is wanted.
std::string CompletionBody(const CompletionHead& head, std::span<const CompletionChoice> choices,
                           const v1::Usage& usage, const v1::State* state = nullptr);
// One streamed event. `null_usage`: one with the usage will follow, and this one has null for it.
std::string CompletionEvent(const CompletionHead& head, const CompletionChoice& choice,
                            bool null_usage, const v1::State* state = nullptr);
// The event that ends a stream with usage: no choices.
std::string UsageEvent(const CompletionHead& head, const v1::Usage& usage);

// {"error": {"message", "type", "code", "param"}}; for TGI {"error", "error_type"}, both texts, and
// for KServe {"error"}.
std::string ErrorBody(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);
// The same for errors that only HTTP has; `code` in OpenAI's sense.
std::string ErrorBody(int http_status, const std::string& code, const std::string& message);

// OpenAI's list of models, and one of them.
std::string ModelsBody(const v1::ListModelsResponse& models);
std::string ModelBody(const v1::Model& model);
std::string TokenizeBody(const v1::TokenizeResponse& response, const v1::Model& model);
// As vLLM gives it, with the size of the vocabulary.
std::string TokenizerInfoBody(const TokenizerInfo& tokenizer);
std::string DetokenizeBody(const v1::DetokenizeResponse& response);
// {"NAME": "VALUE"}
std::string TextBody(const std::string& name, const std::string& value);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_RESPONSES_H_
