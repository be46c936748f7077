#include "tools/batch/score_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/request_fields.h"
#include "server/json/written_log_probability.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr RequestField kScore[] = {
    {"context"},
    {"continuations"},
    {"per_token"},
    {"model"},
};

// Of a message that has `text` and `token_ids`.
template <typename Message>
absl::Status ReadTokens(const Json& value, const char* field, Message& message) {
  if (value.is_string()) {
    message.set_text(value.get<std::string>());
    return absl::OkStatus();
  }
  if (!value.is_array()) return WrongType(field, "a text or an array of token ids", value);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TokenIdArray(value, field));
  message.mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ScoreRequest> ParseScore(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kScore));
  v1::ScoreRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(*request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(const auto per_token, BoolField(json, "per_token"));
  request.set_per_token(per_token.value_or(false));
  const Json* context = Find(json, "context");
  if (context == nullptr) return FieldError("context", "it is missing");
  HIPPODROME_RETURN_IF_ERROR(ReadTokens(*context, "context", request));
  const Json* continuations = Find(json, "continuations");
  if (continuations == nullptr) return FieldError("continuations", "it is missing");
  if (!continuations->is_array()) {
    return WrongType("continuations", "an array of texts, or of arrays of ids", *continuations);
  }
  for (const Json& continuation : *continuations) {
    HIPPODROME_RETURN_IF_ERROR(
        ReadTokens(continuation, "continuations", *request.add_continuations()));
  }
  return request;
}

std::string ScoreBody(const v1::ScoreResponse& response, bool per_token) {
  OrderedJson scores = OrderedJson::array();
  for (const v1::ScoreResponse::Score& score : response.scores()) {
    OrderedJson& json = scores.emplace_back();
    json = {{"log_probability", score.log_probability()},
            {"tokens", score.tokens()},
            {"greedy", score.greedy()}};
    if (!per_token) continue;
    json["token_ids"] = score.token_ids();
    std::vector<double> log_probabilities;
    for (const float value : score.token_log_probabilities()) {
      log_probabilities.push_back(WrittenLogProbability(value));
    }
    json["token_log_probabilities"] = log_probabilities;
  }
  return OrderedJson{{"scores", scores}}.dump();
}

}  // namespace hippodrome
