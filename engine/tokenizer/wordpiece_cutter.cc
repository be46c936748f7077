#include "engine/tokenizer/wordpiece_cutter.h"

#include <algorithm>
#include <string_view>

namespace hippodrome {
namespace {

constexpr int64_t kMostCharacters = 100;

bool BeginsCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) != 0x80; }

// The longest piece at the front of `rest`; id -1 if there is none.
struct Piece {
  int32_t id = -1;
  size_t size = 0;
};

Piece LongestPiece(const WordPieceVocabulary& vocabulary, std::string_view rest, bool continues) {
  for (size_t size = std::min(rest.size(), vocabulary.longest); size > 0; --size) {
    if (size < rest.size() && !BeginsCharacter(rest[size])) continue;
    const int32_t id = vocabulary.Find(rest.substr(0, size), continues);
    if (id >= 0) return {id, size};
  }
  return {};
}

// Whether the word has pieces from end to end; if not, what was appended is of no use.
bool AppendAll(const WordPieceVocabulary& vocabulary, BertWords::Word word, int64_t number,
               std::vector<WordPiece>& pieces) {
  for (size_t begin = 0; begin < word.text.size();) {
    const Piece piece = LongestPiece(vocabulary, word.text.substr(begin), begin > 0);
    if (piece.id < 0) return false;
    const size_t end = begin + piece.size;
    pieces.push_back({piece.id, word.places[begin], word.places[end - 1] + 1, number});
    begin = end;
  }
  return true;
}

}  // namespace

void AppendPieces(const WordPieceVocabulary& vocabulary, BertWords::Word word, int64_t number,
                  std::vector<WordPiece>& pieces) {
  const size_t before = pieces.size();
  const auto characters = std::count_if(word.text.begin(), word.text.end(), BeginsCharacter);
  if (characters <= kMostCharacters && AppendAll(vocabulary, word, number, pieces)) return;
  pieces.resize(before);
  const int32_t unk = vocabulary.specials[WordPieceVocabulary::kUnk];
  pieces.push_back({unk, word.places.front(), word.places.back() + 1, number});
}

}  // namespace hippodrome
