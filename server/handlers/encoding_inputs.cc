#include "server/handlers/encoding_inputs.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

// A pair without tokens: [CLS] [SEP] [SEP].
constexpr int64_t kAddedTokens = 3;

struct Layout {
  const ServedEncoder& model;
  bool truncates;
  TruncationSide side;
};

absl::StatusOr<Layout> ReadLayout(const v1::Truncate& truncate, const ServedEncoder& model) {
  // A model with room for less cannot take a text at all, and says so below.
  const bool truncates = truncate.enabled() && model.engine().max_tokens() >= kAddedTokens;
  switch (truncate.direction()) {
    case v1::TRUNCATION_DIRECTION_UNSPECIFIED:
    case v1::TRUNCATION_DIRECTION_RIGHT:
      return Layout{model, truncates, TruncationSide::kRight};
    case v1::TRUNCATION_DIRECTION_LEFT:
      return Layout{model, truncates, TruncationSide::kLeft};
    default:
      return FieldError("truncate.direction", "expected RIGHT or LEFT");
  }
}

absl::StatusOr<EncodedText> LayOutText(const std::string& first, const std::string* second,
                                       const Layout& layout) {
  if (first.empty() && (second == nullptr || second->empty())) {
    return InvalidArgument("the text is empty");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, layout.model.Tokenizer());
  const std::vector<WordPiece> a = tokenizer->Tokenize(first);
  const std::vector<WordPiece> b =
      second == nullptr ? std::vector<WordPiece>() : tokenizer->Tokenize(*second);
  const Truncation truncation = layout.truncates ? Truncation::kLongestFirst : Truncation::kNone;
  return EncodePair(*tokenizer, a, b, second != nullptr, layout.model.engine().max_tokens(),
                    truncation, layout.side);
}

absl::StatusOr<EncodedText> TakeTokens(const v1::EncodingInput::Tokens& tokens,
                                       const ServedEncoder& model) {
  if (tokens.types_size() != 0 && tokens.types_size() != tokens.ids_size()) {
    return InvalidArgument(fmt::format("{} types for {} ids, expected one for each or none",
                                       tokens.types_size(), tokens.ids_size()));
  }
  const absl::StatusOr<const WordPieceTokenizer*> tokenizer = model.Tokenizer();
  EncodedText text;
  text.ids.assign(tokens.ids().begin(), tokens.ids().end());
  text.types.assign(tokens.types().begin(), tokens.types().end());
  text.types.resize(text.ids.size());
  text.pieces.resize(text.ids.size());
  for (size_t i = 0; i < text.ids.size(); ++i) {
    const int32_t id = text.ids[i];
    text.pieces[i].id = id;
    const bool added = tokenizer.ok() && (id == (*tokenizer)->cls() || id == (*tokenizer)->sep());
    text.sequence.push_back(added ? -1 : 0);
  }
  return text;
}

absl::StatusOr<EncodedText> LayOut(const v1::EncodingInput& input, const Layout& layout) {
  switch (input.content_case()) {
    case v1::EncodingInput::kText:
      return LayOutText(input.text(), nullptr, layout);
    case v1::EncodingInput::kPair:
      return LayOutText(input.pair().first(), &input.pair().second(), layout);
    case v1::EncodingInput::kTokens:
      return TakeTokens(input.tokens(), layout.model);
    default:
      return InvalidArgument("expected a text, a pair of texts or tokens");
  }
}

}  // namespace

std::string Place(const std::string& field, int64_t index) {
  return fmt::format("{}[{}]", field, index);
}

absl::Status At(const std::string& place, const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return FieldError(place, Message(status));
  return {status.code(), place + ": " + Message(status)};
}

absl::Status CheckTokens(const EncodedText& text, const EncoderEngine& engine) {
  return engine.Validate(
      {.ids = text.ids, .types = text.types, .task = EncoderTask::kEmbedding, .rows = {}});
}

absl::Status CheckCount(const std::string& field, int64_t count, const RequestLimits& limits) {
  if (count >= 1 && count <= limits.max_inputs) return absl::OkStatus();
  return FieldError(field, fmt::format("there are {}, expected 1 to {}", count, limits.max_inputs));
}

absl::StatusOr<std::vector<EncodedText>> LayOutInputs(const EncodingInputs& inputs,
                                                      const v1::Truncate& truncate,
                                                      const ServedEncoder& model,
                                                      const RequestLimits& limits) {
  HIPPODROME_RETURN_IF_ERROR(CheckCount("inputs", inputs.size(), limits));
  HIPPODROME_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(truncate, model));
  std::vector<EncodedText> texts;
  for (int i = 0; i < inputs.size(); ++i) {
    absl::StatusOr<EncodedText> text = LayOut(inputs[i], layout);
    absl::Status status = text.status();
    if (status.ok()) status = CheckTokens(*text, model.engine());
    if (!status.ok()) return At(Place("inputs", i), status);
    texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace hippodrome
