// What kinds of characters BERT's normalization tells apart.
//
// Categories are those of Unicode 8.0 and decompositions those of 9.0, as in the reference library:
// a character that is younger is of none of these kinds and stays where it is.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BERT_CHARACTERS_H_
#define HIPPODROME_ENGINE_TOKENIZER_BERT_CHARACTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hippodrome {

// All take any code point of UTF-8, that is, no surrogates.

// Dropped from the text: Cc, Cf and Co but for tab, line feed and carriage return; U+FFFD.
bool IsBertControl(int32_t code_point);
// White_Space. Ask after IsBertControl: some characters are both.
bool IsBertSpace(int32_t code_point);
// Set apart as a word: the blocks of CJK ideographs, U+2B820 to U+2B91F excepted.
bool IsBertIdeograph(int32_t code_point);
// Dropped from the decomposed text: Mn.
bool IsBertMark(int32_t code_point);
// A word of its own: P* and all of ASCII that is neither letter, digit, space nor control.
bool IsBertPunctuation(int32_t code_point);

// Canonical combining class; 0 for what starts a sequence.
int BertCombiningClass(int32_t code_point);

// The canonical decomposition of a character.
struct Decomposition {
  std::array<int32_t, 8> buffer{};  // the longest has 4
  size_t size = 0;
  std::span<const int32_t> code_points() const { return {buffer.data(), size}; }
};
Decomposition Decompose(int32_t code_point);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BERT_CHARACTERS_H_
