// HTTP request bodies to messages.
#ifndef HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_
#define HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/json/request_fields.h"
#include "server/options.h"

namespace hippodrome {

// The path that takes a CompletionCall.
inline constexpr char kCompletionsPath[] = "/v1/completions";

// One call of /v1/completions.
struct CompletionCall {
  std::vector<v1::GenerateRequest> requests;  // one per prompt, else equal; at least one
  int64_t choices = 1;                        // answers to each prompt
  int64_t candidates = 1;  // made for each prompt, of which the likeliest `choices` are the answers
  bool echo = false;       // the prompt stands before its answers
  bool scored = false;     // log probabilities are part of the answer
  bool stream = false;
  bool include_usage = false;  // a last event with the usage
};

extern const RequestFields kCompletionFields;
extern const RequestFields kTokenizeFields;
extern const RequestFields kDetokenizeFields;

// These check syntax, types and what HTTP alone has; ranges are for Handlers. Fields that are not
// there are errors (CheckFields() in request_fields.h). Errors: kInvalidArgument naming the field,
// or the place of a syntax error.
absl::StatusOr<CompletionCall> ParseCompletion(const std::string& body,
                                               const RequestLimits& limits);
absl::StatusOr<v1::TokenizeRequest> ParseTokenize(const std::string& body);
absl::StatusOr<v1::DetokenizeRequest> ParseDetokenize(const std::string& body);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_
