// The layout of an encoder's input: [CLS] A [SEP], or [CLS] A [SEP] B [SEP].
#ifndef HIPPODROME_ENGINE_TOKENIZER_ENCODE_PAIR_H_
#define HIPPODROME_ENGINE_TOKENIZER_ENCODE_PAIR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/tokenizer/wordpiece.h"

namespace hippodrome {

// Which tokens go when there are too many.
enum class Truncation : uint8_t {
  kNone,  // none
  // Those of the longer text; once it is as short as the other, those of both alike. Of an odd
  // number left, the first text keeps the smaller part, unless it was the longer.
  kLongestFirst,
  kOnlySecond,  // those of the second text, at most all
};
// The end at which a text loses its tokens; kRight drops the last ones.
enum class TruncationSide : uint8_t { kRight, kLeft };

// A laid-out input. All vectors have one element per token.
struct EncodedText {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;     // 0 up to the first [SEP], 1 behind it
  std::vector<WordPiece> pieces;  // where each token came from; begin = end = 0, word -1 for the
                                  // tokens that the layout adds
  std::vector<int8_t> sequence;   // 0: of A, 1: of B, -1: added by the layout
  int64_t dropped = 0;            // tokens that were truncated
};

// Without has_pair, `b` is not looked at. `most`: tokens in all, the added ones included, at least
// 3; kNone ignores it, and kOnlySecond exceeds it when the rest is longer by itself: see
// ids.size().
EncodedText EncodePair(const WordPieceTokenizer& tokenizer, std::span<const WordPiece> a,
                       std::span<const WordPiece> b, bool has_pair, int64_t most,
                       Truncation truncation, TruncationSide side = TruncationSide::kRight);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_ENCODE_PAIR_H_
