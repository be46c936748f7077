// HTTP request bodies to messages, for the tasks of encoders.
#ifndef HIPPODROME_SERVER_JSON_JSON_ENCODING_REQUESTS_H_
#define HIPPODROME_SERVER_JSON_JSON_ENCODING_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "hippodrome/v1/encoding.pb.h"
#include "server/json/request_fields.h"

namespace hippodrome {

// Each call is a request and what its answer should look like.
struct PredictCall {
  enum class Function : uint8_t { kDefault, kSoftmax, kSigmoid };

  v1::ClassifyRequest request;  // of raw scores where `function` is to be applied to them
  bool nested = false;          // a list of results, not the only one
  Function function = Function::kDefault;
  std::optional<int64_t> top_k;  // at least 1; absent: all labels
};

struct EmbedCall {
  v1::EmbedRequest request;
  std::optional<int64_t> dimensions;  // the client expects this size
  bool base64 = false;
};

struct FillMaskCall {
  v1::FillMaskRequest request;
  bool batch = false;  // a list of results, not the only one
};

struct TokenClassificationCall {
  v1::TagTokensRequest request;
  bool batch = false;
};

struct QuestionAnsweringCall {
  v1::AnswerQuestionRequest request;
  bool batch = false;
};

extern const RequestFields kPredictFields;
extern const RequestFields kEmbedFields;
extern const RequestFields kEmbedAllFields;
extern const RequestFields kEmbeddingsFields;
extern const RequestFields kFillMaskFields;
extern const RequestFields kTokenClassificationFields;
extern const RequestFields kQuestionAnsweringFields;

// These check syntax and types; ranges are for the handlers. Parameters may stand in "parameters"
// or beside "inputs", and "model" names the model. Fields that are not there are errors unless they
// ask for nothing (CheckFields() in request_fields.h). Errors: kInvalidArgument naming the field,
// or the place of a syntax error.

// TEI's /predict. With "parameters", as huggingface_hub sends it for text classification, the
// answer is nested, which that client expects.
absl::StatusOr<PredictCall> ParsePredict(const std::string& body);
// TEI's /embed.
absl::StatusOr<EmbedCall> ParseEmbed(const std::string& body);
// TEI's /embed_all: of each token, as the model gives it.
absl::StatusOr<EmbedCall> ParseEmbedAll(const std::string& body);
// OpenAI's /v1/embeddings.
absl::StatusOr<EmbedCall> ParseEmbeddings(const std::string& body);
// The tasks of Hugging Face. For fill-mask and question answering a list of one input is no batch.
absl::StatusOr<FillMaskCall> ParseFillMask(const std::string& body);
absl::StatusOr<TokenClassificationCall> ParseTokenClassification(const std::string& body);
absl::StatusOr<QuestionAnsweringCall> ParseQuestionAnswering(const std::string& body);

// "truncate", true or false, and "truncation_direction", "left" or "right" in any case.
absl::Status ReadTruncation(const Json& body, v1::Truncate& truncate);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_ENCODING_REQUESTS_H_
