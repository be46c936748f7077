#include "server/handlers/token_places.h"

#include <string_view>

#include "engine/base/status.h"
#include "engine/tokenizer/code_points.h"
#include "engine/tokenizer/encode_pair.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {
namespace {

PlacedToken Added(const WordPieceTokenizer& tokenizer, int32_t id) {
  return {.id = id, .text = tokenizer.Token(id), .special = true, .place = std::nullopt};
}

std::vector<PlacedToken> PlacePieces(const WordPieceTokenizer& tokenizer, const std::string& text,
                                     bool add_special) {
  std::vector<PlacedToken> tokens;
  if (add_special) tokens.push_back(Added(tokenizer, tokenizer.cls()));
  std::string_view rest = text;  // from code point `at` on, so that all pieces take one pass
  int64_t at = 0;
  for (const WordPiece& piece : tokenizer.Tokenize(text)) {
    const std::string_view slice = SliceCodePoints(rest, piece.begin - at, piece.end - at);
    tokens.push_back(
        {.id = piece.id, .text = std::string(slice), .place = std::pair(piece.begin, piece.end)});
    rest.remove_prefix(slice.data() - rest.data());
    at = piece.begin;
  }
  if (add_special) tokens.push_back(Added(tokenizer, tokenizer.sep()));
  return tokens;
}

std::vector<PlacedToken> PlaceBytes(const BpeTokenizer& tokenizer, const std::string& text) {
  std::vector<PlacedToken> tokens;
  int64_t begun = 0;  // characters whose first byte has been seen
  for (const int32_t id : tokenizer.Encode(text)) {
    const std::string& bytes = tokenizer.Bytes(id);
    const auto continues = [](char c) { return (c & 0xC0) == 0x80; };
    const int64_t begin = !bytes.empty() && continues(bytes[0]) ? begun - 1 : begun;
    for (const char c : bytes) begun += continues(c) ? 0 : 1;
    Utf8Stream characters;
    std::string part = characters.Append(bytes);
    part += characters.Finish();
    tokens.push_back({.id = id, .text = std::move(part), .place = std::pair(begin, begun)});
  }
  return tokens;
}

}  // namespace

absl::StatusOr<std::vector<PlacedToken>> PlaceTokens(ServedModel& model, const std::string& text,
                                                     bool add_special) {
  if (model.encoder() != nullptr) {
    HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, model.encoder()->Tokenizer());
    return PlacePieces(*tokenizer, text, add_special);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, model.decoder()->Tokenizer());
  return PlaceBytes(*tokenizer, text);
}

bool IsSpecialToken(ServedModel& model, int32_t id) {
  if (model.encoder() != nullptr) {
    const auto tokenizer = model.encoder()->Tokenizer();
    return tokenizer.ok() && (*tokenizer)->IsSpecial(id);
  }
  const auto tokenizer = model.decoder()->Tokenizer();
  return tokenizer.ok() && (*tokenizer)->end_of_text() == id;
}

}  // namespace hippodrome
