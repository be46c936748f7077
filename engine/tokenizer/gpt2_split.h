// The GPT-2 pattern that splits text into the words within which bytes are merged.
#ifndef HIPPODROME_ENGINE_TOKENIZER_GPT2_SPLIT_H_
#define HIPPODROME_ENGINE_TOKENIZER_GPT2_SPLIT_H_

#include <cstddef>
#include <string_view>

namespace hippodrome {

// Bytes of the first word of `text`, as the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// matches it. \s is the property White_Space. A byte that is not part of a UTF-8 character is one
// symbol that is neither letter, number nor space. REQUIRES: text is not empty. At least 1, so that
// the words cover any text.
size_t FirstWordLength(std::string_view text);

// Bytes of the words at the beginning of `text` that stay the same, whatever is appended to it: all
// but its last two ("'" and "r" with "e" appended are one word).
size_t SettledLength(std::string_view text);

// Bytes of the run of White_Space in which `text` ends; 0: none.
size_t TrailingSpaceLength(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_GPT2_SPLIT_H_
