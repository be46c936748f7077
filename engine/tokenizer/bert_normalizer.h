// The normalization of BERT's uncased models.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BERT_NORMALIZER_H_
#define HIPPODROME_ENGINE_TOKENIZER_BERT_NORMALIZER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tokenizer/bert_words.h"

namespace hippodrome {

// In this order: control characters are dropped and white space becomes a space; spaces are put
// round ideographs; the rest is decomposed (NFD) and loses its marks; then each character is
// lower-cased by itself.
//
// A character keeps the place of the one it comes from. When NFD sorts marks that are not dropped,
// the characters change and the places stay, as in the reference library. Not thread-safe: it
// keeps its buffers.
class BertNormalizer {
 public:
  // Appends the words of `text`, whose first code point has place `first`, and ends the last one.
  // Returns the place behind the text. Bytes that are not UTF-8 are dropped; each maximal part of
  // a character takes one place.
  int64_t Normalize(std::string_view text, int64_t first, BertWords& words);

 private:
  // A decomposed character that its combining class may move.
  struct Mark {
    int32_t code_point = 0;
    int combining_class = 0;
    size_t order = 0;     // in the text
    bool starts = false;  // it is the first of its decomposition
  };

  void AppendAscii(char c, int64_t place, BertWords& words);
  void Append(int32_t code_point, int64_t place, BertWords& words);
  void AppendDecomposed(int32_t code_point, int64_t place, BertWords& words);
  void AppendMarks(BertWords& words);

  // The marks behind the last starter, in order of text, and the places of those that start.
  std::vector<Mark> marks_;
  std::vector<int64_t> places_;
  int64_t starter_place_ = 0;  // of the last starter
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BERT_NORMALIZER_H_
