// WordPiece tokenization as BERT's uncased models use it, with places in the original text.
#ifndef HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_H_
#define HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// One token of a text. Places are code points of the original text: [begin, end).
struct WordPiece {
  int32_t id = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t word = -1;  // which word (between white space and punctuation) it is a piece of; a
                      // special token in the text is a word of its own
};

// Text to WordPiece ids and back. Thread-safe.
//
// The text is cleaned (control characters dropped, white space unified), ideographs are set apart,
// accents stripped (NFD without Mn) and letters lower-cased; it is split at white space and
// punctuation, and each word is cut into the longest pieces of the vocabulary, "##" marking those
// that go on. A word of more than 100 characters, or with a part that has no piece, is one [UNK].
// [UNK], [SEP], [PAD], [CLS] and [MASK] written in the text are those tokens. Bytes that are not
// UTF-8 count as U+FFFD, one for each maximal part of a character.
class WordPieceTokenizer {
 public:
  // From the text of vocab.txt: a token per line, the line's number is the id. No line is empty, no
  // token appears twice. Errors: kInvalidArgument with the line at fault, or naming the special
  // token that is missing.
  static absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> Parse(const std::string& vocab);
  // Reads DIR/vocab.txt. Errors: as above; kNotFound when there is none.
  static absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> Read(const std::string& directory);
  ~WordPieceTokenizer();

  int64_t vocab_size() const;
  int32_t pad() const;
  int32_t unk() const;
  int32_t cls() const;
  int32_t sep() const;
  int32_t mask() const;
  bool IsSpecial(int32_t id) const;  // one of these five

  // The tokens of a text, without [CLS] and [SEP] round it.
  std::vector<WordPiece> Tokenize(std::string_view text) const;
  // The id of exactly this token ("##ing"), or -1.
  int32_t Find(std::string_view token) const;
  // The token as it stands in the vocabulary; "" for ids that do not exist.
  const std::string& Token(int32_t id) const;
  // The text of tokens as the reference libraries join it: pieces to words, words with spaces, no
  // space before punctuation; special tokens left out on request.
  std::string Decode(std::span<const int32_t> ids, bool skip_special) const;

 private:
  struct Impl;
  explicit WordPieceTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_H_
