// Any bytes tokenize to pieces in order, as two parts parted by a space do; any text (behind the
// first NUL) is a vocabulary or an error.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/wordpiece.h"

namespace hippodrome {
namespace {

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n##ab\nthe\ne\n.\n\u4e2d\n\u1112\n##\u1161\n##"
    "\u302e";

std::unique_ptr<WordPieceTokenizer> MakeTokenizer() {
  auto tokenizer = WordPieceTokenizer::Parse(kVocabulary);
  if (!tokenizer.ok()) std::abort();
  return *std::move(tokenizer);
}

void Check(bool holds) {
  if (!holds) std::abort();
}

std::vector<WordPiece> CheckedTokenize(const WordPieceTokenizer& tokenizer, std::string_view text) {
  std::vector<WordPiece> pieces = tokenizer.Tokenize(text);
  WordPiece before;
  for (const WordPiece& piece : pieces) {
    Check(piece.id >= 0 && piece.id < tokenizer.vocab_size());
    Check(before.begin <= piece.begin && piece.begin < piece.end);
    Check(piece.end <= static_cast<int64_t>(text.size()));
    Check(piece.word == before.word || piece.word == before.word + 1);
    before = piece;
  }
  return pieces;
}

std::vector<int32_t> Ids(const std::vector<WordPiece>& pieces) {
  std::vector<int32_t> ids;
  for (const WordPiece& piece : pieces) ids.push_back(piece.id);
  return ids;
}

void CheckTokenizer(const WordPieceTokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> whole = Ids(CheckedTokenize(tokenizer, text));
  tokenizer.Decode(whole, false);
  const size_t space = text.find(' ');
  if (space == text.npos) return;
  std::vector<int32_t> parts = Ids(CheckedTokenize(tokenizer, text.substr(0, space)));
  const std::vector<int32_t> rest = Ids(CheckedTokenize(tokenizer, text.substr(space)));
  parts.insert(parts.end(), rest.begin(), rest.end());
  Check(parts == whole);
}

}  // namespace
}  // namespace hippodrome

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const tokenizer = hippodrome::MakeTokenizer().release();
  const std::string text(reinterpret_cast<const char*>(data), size);
  hippodrome::CheckTokenizer(*tokenizer, text);
  const size_t end = text.find('\0');
  if (end == text.npos) return 0;
  const auto other = hippodrome::WordPieceTokenizer::Parse(text.substr(end + 1));
  if (other.ok()) hippodrome::CheckTokenizer(**other, text.substr(0, end));
  return 0;
}
