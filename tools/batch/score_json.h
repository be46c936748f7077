// hippodrome.v1.Generation.Score as JSON.
#ifndef HIPPODROME_TOOLS_BATCH_SCORE_JSON_H_
#define HIPPODROME_TOOLS_BATCH_SCORE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"

namespace hippodrome {

// {"context", "continuations", "per_token", "model"}, of which the first two are needed; a text is
// a string or an array of token ids. Checks syntax and types. Errors: kInvalidArgument naming the
// field.
absl::StatusOr<v1::ScoreRequest> ParseScore(const std::string& body);

// {"scores": [{"log_probability", "tokens", "greedy"}]}, with "token_ids" and
// "token_log_probabilities" where `per_token`.
std::string ScoreBody(const v1::ScoreResponse& response, bool per_token);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BATCH_SCORE_JSON_H_
