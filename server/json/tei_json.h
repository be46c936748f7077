// Bodies of text-embeddings-inference beyond /predict and /embed: /rerank, /similarity, /tokenize
// and /decode.
#ifndef HIPPODROME_SERVER_JSON_TEI_JSON_H_
#define HIPPODROME_SERVER_JSON_TEI_JSON_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hippodrome/v1/encoding.pb.h"
#include "server/handlers/token_places.h"
#include "server/json/request_fields.h"

namespace hippodrome {

struct RerankCall {
  v1::ClassifyRequest request;  // of the pairs (query, text)
  bool return_text = false;
};

struct SimilarityCall {
  v1::EmbedRequest request;  // the source sentence, then the others
};

struct TeiTokenizeCall {
  std::string model;
  std::vector<std::string> inputs;
  bool add_special_tokens = true;
};

struct TeiDecodeCall {
  std::string model;
  std::vector<std::vector<int32_t>> ids;
  bool skip_special_tokens = true;
};

extern const RequestFields kRerankFields;
extern const RequestFields kSimilarityFields;
extern const RequestFields kTeiTokenizeFields;
extern const RequestFields kTeiDecodeFields;

// These check syntax and types; ranges are for the handlers. Fields that are not known are errors.
// Errors: kInvalidArgument naming the field, or the place of a syntax error.
absl::StatusOr<RerankCall> ParseRerank(const std::string& body);
absl::StatusOr<SimilarityCall> ParseSimilarity(const std::string& body);
absl::StatusOr<TeiTokenizeCall> ParseTeiTokenize(const std::string& body);
absl::StatusOr<TeiDecodeCall> ParseTeiDecode(const std::string& body);

// [{"index", "text", "score"}], best first, of equal ones the lower index. REQUIRES: the model has
// one label.
std::string RerankBody(const RerankCall& call, const v1::ClassifyResponse& response);
// The cosines of the first embedding with each of the others. REQUIRES: normalised embeddings.
std::string SimilarityBody(const v1::EmbedResponse& response);
// [[{"id", "text", "special", "start", "stop"}]]
std::string TeiTokenizeBody(std::span<const std::vector<PlacedToken>> inputs);
// ["text", ...]
std::string TeiDecodeBody(std::span<const std::string> texts);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_TEI_JSON_H_
