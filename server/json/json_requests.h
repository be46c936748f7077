// HTTP request bodies to messages.
#ifndef HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_
#define HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/options.h"

namespace hippodrome {

// One call of /v1/completions.
struct CompletionCall {
  std::vector<v1::GenerateRequest> requests;  // one per prompt, else equal; at least one
  bool stream = false;
  bool include_usage = false;  // a last event with the usage
};

// These check syntax and types; ranges are for Handlers. Unknown fields are ignored;
// fields of the OpenAI interface that this server lacks are errors unless they ask for nothing. At
// most 64 levels of nesting. Errors: kInvalidArgument naming the field, or the place of a syntax
// error.
absl::StatusOr<CompletionCall> ParseCompletion(const std::string& body,
                                               const RequestLimits& limits);
absl::StatusOr<v1::TokenizeRequest> ParseTokenize(const std::string& body);
absl::StatusOr<v1::DetokenizeRequest> ParseDetokenize(const std::string& body);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_REQUESTS_H_
