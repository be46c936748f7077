#include "engine/tokenizer/wordpiece_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

constexpr size_t kMostWordPieces = 1 << 24;
constexpr std::string_view kContinues = "##";

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char character = FirstUtf8Char(text);
    if (character.kind != Utf8Char::Kind::kValid) return false;
    text.remove_prefix(character.length);
  }
  return true;
}

absl::Status AddWordPiece(std::string_view line, WordPieceVocabulary& vocabulary) {
  if (line.empty()) return InvalidArgument("expected a token, found an empty line");
  if (!IsUtf8(line)) return InvalidArgument("expected a token in UTF-8");
  if (vocabulary.tokens.size() == kMostWordPieces) return InvalidArgument("more than 2^24 tokens");
  const int32_t id = static_cast<int32_t>(vocabulary.tokens.size());
  const auto [first, is_new] = vocabulary.ids.emplace(line, id);
  if (!is_new) return InvalidArgument(fmt::format("line {} has this token too", first->second + 1));
  if (line.starts_with(kContinues)) {
    vocabulary.continuations.emplace(line.substr(kContinues.size()), id);
  }
  vocabulary.tokens.emplace_back(line);
  vocabulary.longest = std::max(vocabulary.longest, line.size());
  return absl::OkStatus();
}

absl::Status FindSpecials(WordPieceVocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.specials.size(); ++i) {
    const std::string name(WordPieceVocabulary::kSpecialNames[i]);
    vocabulary.specials[i] = vocabulary.Find(name, false);
    if (vocabulary.specials[i] < 0) return InvalidArgument("vocab.txt: there is no token " + name);
  }
  return absl::OkStatus();
}

}  // namespace

int32_t WordPieceVocabulary::Find(std::string_view piece, bool continues) const {
  const Ids& map = continues ? continuations : ids;
  const auto found = map.find(absl::string_view(piece.data(), piece.size()));
  return found == map.end() ? -1 : found->second;
}

absl::StatusOr<WordPieceVocabulary> ParseWordPieceVocabulary(std::string_view text) {
  WordPieceVocabulary vocabulary;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const absl::Status status = AddWordPiece(line, vocabulary);
    if (status.ok()) continue;
    return InvalidArgument(
        fmt::format("vocab.txt:{}: \"{}\": {}", number, OneLine(line), Message(status)));
  }
  HIPPODROME_RETURN_IF_ERROR(FindSpecials(vocabulary));
  return vocabulary;
}

}  // namespace hippodrome
