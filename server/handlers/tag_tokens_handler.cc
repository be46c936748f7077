// EncodingHandlers::TagTokens().
#include <memory>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/tasks/tagged_spans.h"
#include "engine/tokenizer/code_points.h"
#include "server/handlers/encoding_handlers.h"
#include "server/handlers/encoding_inputs.h"
#include "server/handlers/encoding_submit.h"

namespace hippodrome {
namespace {

// What the response needs of one input.
struct TaggedInput {
  EncodedText tokens;
  std::string text;  // empty for an input of tokens
};

struct Tagger {
  Aggregation aggregation = Aggregation::kSimple;
  const std::vector<std::string>& labels;
  const WordPieceTokenizer* tokenizer = nullptr;  // null: tokens have no names
  std::vector<TaggedInput> inputs = {};

  std::string Word(const TaggedInput& input, const TaggedSpan& span) const {
    if (aggregation != Aggregation::kNone) {
      return std::string(SliceCodePoints(input.text, span.begin, span.end));
    }
    return tokenizer == nullptr ? "" : tokenizer->Token(input.tokens.ids[span.token]);
  }

  v1::TagTokensResponse operator()(const std::vector<EncoderOutput>& outputs) const {
    v1::TagTokensResponse response;
    for (size_t i = 0; i < inputs.size(); ++i) {
      v1::TagTokensResponse::Result& result = *response.add_results();
      const TaggedInput& input = inputs[i];
      for (const TaggedSpan& span :
           TaggedSpans(input.tokens, outputs[i].values, labels, aggregation)) {
        v1::TagTokensResponse::Entity& entity = *result.add_entities();
        entity.set_label(span.label);
        entity.set_score(span.score);
        entity.set_word(Word(input, span));
        entity.set_start(span.begin);
        entity.set_end(span.end);
        if (aggregation == Aggregation::kNone) entity.set_index(span.token);
      }
    }
    return response;
  }
};

absl::StatusOr<Aggregation> ReadAggregation(v1::Aggregation aggregation) {
  switch (aggregation) {
    case v1::AGGREGATION_NONE:
      return Aggregation::kNone;
    case v1::AGGREGATION_UNSPECIFIED:
    case v1::AGGREGATION_SIMPLE:
      return Aggregation::kSimple;
    case v1::AGGREGATION_FIRST:
      return Aggregation::kFirst;
    case v1::AGGREGATION_AVERAGE:
      return Aggregation::kAverage;
    case v1::AGGREGATION_MAX:
      return Aggregation::kMax;
    default:
      return FieldError("aggregation", "expected NONE, SIMPLE, FIRST, AVERAGE or MAX");
  }
}

// Places are those in one text, and tokens have none.
absl::Status CheckContents(const EncodingInputs& inputs, Aggregation aggregation) {
  for (int i = 0; i < inputs.size(); ++i) {
    const bool tokens = inputs[i].has_tokens() && aggregation == Aggregation::kNone;
    if (inputs[i].has_text() || tokens) continue;
    return FieldError(Place("inputs", i), "expected a text, or tokens with AGGREGATION_NONE");
  }
  return absl::OkStatus();
}

}  // namespace

Answer<v1::TagTokensResponse> EncodingHandlers::TagTokens(const v1::TagTokensRequest& request,
                                                          const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const std::shared_ptr<ServedEncoder> model,
      models_.FindEncoder(request.model(), {EncoderHead::kTokenClassification}));
  HIPPODROME_ASSIGN_OR_RETURN(const Aggregation aggregation,
                              ReadAggregation(request.aggregation()));
  HIPPODROME_RETURN_IF_ERROR(CheckContents(request.inputs(), aggregation));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<EncodedText> texts,
                              LayOutInputs(request.inputs(), request.truncate(), *model, limits_));
  Tagger tagger{aggregation, model->engine().config().labels};
  if (const auto tokenizer = model->Tokenizer(); tokenizer.ok()) tagger.tokenizer = *tokenizer;
  std::vector<EncoderRequest> requests;
  for (size_t i = 0; i < texts.size(); ++i) {
    requests.push_back(NewRequest(texts[i], EncoderTask::kHead, AllRows(texts[i])));
    tagger.inputs.push_back({std::move(texts[i]), request.inputs(static_cast<int>(i)).text()});
  }
  return SubmitEncoding<v1::TagTokensResponse>(*model, std::move(requests), caller,
                                               std::move(tagger));
}

}  // namespace hippodrome
