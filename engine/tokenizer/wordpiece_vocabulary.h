// The tokens of a WordPiece vocabulary.
#ifndef HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_VOCABULARY_H_
#define HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_VOCABULARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// Immutable once parsed.
struct WordPieceVocabulary {
  static constexpr std::array<std::string_view, 5> kSpecialNames = {"[PAD]", "[UNK]", "[CLS]",
                                                                    "[SEP]", "[MASK]"};
  enum Special { kPad, kUnk, kCls, kSep, kMask };  // places in both arrays

  using Ids = absl::flat_hash_map<std::string, int32_t>;

  std::vector<std::string> tokens;    // by id
  Ids ids;                            // of all tokens as they stand in the file
  Ids continuations;                  // of those with "##", without it
  size_t longest = 0;                 // bytes of the longest token
  std::array<int32_t, 5> specials{};  // ids of kSpecialNames

  // The id of a piece at the beginning of a word or further on in it, or -1.
  int32_t Find(std::string_view piece, bool continues) const;
};

// From the text of vocab.txt: a token per line, the line's number is the id. Lines end with LF or
// CRLF; no line is empty, none appears twice. Errors: kInvalidArgument with the line at fault, or
// naming the special token that is missing.
absl::StatusOr<WordPieceVocabulary> ParseWordPieceVocabulary(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_VOCABULARY_H_
