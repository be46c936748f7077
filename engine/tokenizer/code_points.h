// Places in UTF-8 text by code points.
#ifndef HIPPODROME_ENGINE_TOKENIZER_CODE_POINTS_H_
#define HIPPODROME_ENGINE_TOKENIZER_CODE_POINTS_H_

#include <cstdint>
#include <string_view>

namespace hippodrome {

// The part of `text` from code point `begin` up to `end`, cut at the end of the text. What is not
// UTF-8 counts as WordPieceTokenizer counts it.
std::string_view SliceCodePoints(std::string_view text, int64_t begin, int64_t end);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_CODE_POINTS_H_
