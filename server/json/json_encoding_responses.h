// Results to HTTP response bodies, for the tasks of encoders.
#ifndef HIPPODROME_SERVER_JSON_JSON_ENCODING_RESPONSES_H_
#define HIPPODROME_SERVER_JSON_JSON_ENCODING_RESPONSES_H_

#include <string>

#include "hippodrome/v1/encoding.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "server/json/json_encoding_requests.h"
#include "server/options.h"

namespace hippodrome {

// A call says what its answer looks like, and the full name of its model; a response has at least
// one result. Scores are written with the digits that a float needs.

// [{"label", "score"}], best first; nested: a list of those.
std::string PredictBody(const PredictCall& call, const v1::ClassifyResponse& response);
// [[x, ...], ...]
std::string EmbedBody(const v1::EmbedResponse& response);
// [[[x, ...], ...], ...]: of each token of each input. REQUIRES: an answer to per_token.
std::string EmbedAllBody(const v1::EmbedResponse& response);
// {"object": "list", "data": [{"object", "index", "embedding"}], "model", "usage"}; base64: of the
// floats, little-endian.
std::string EmbeddingsBody(const EmbedCall& call, const v1::EmbedResponse& response);
// [{"score", "token", "token_str", "sequence"}]; of an input with several masks a list of those; of
// a batch a list of the answers to its inputs.
std::string FillMaskBody(const FillMaskCall& call, const v1::FillMaskResponse& response);
// [{"entity_group", "score", "word", "start", "end"}], for single tokens [{"entity", "score",
// "index", "word", "start", "end"}]; of a batch a list of those.
std::string TokenClassificationBody(const TokenClassificationCall& call,
                                    const v1::TagTokensResponse& response);
// {"score", "start", "end", "answer"}; if more than one was asked for, a list of those; of a batch
// a list of the answers to its questions.
std::string QuestionAnsweringBody(const QuestionAnsweringCall& call,
                                  const v1::AnswerQuestionResponse& response);

// What TEI says in /info. "model_type" is null for a model that neither classifies nor embeds.
std::string InfoBody(const v1::Model& model, const RequestLimits& limits, const HttpOptions& http);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_ENCODING_RESPONSES_H_
