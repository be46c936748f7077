// Decoding of one UTF-8 character from untrusted bytes.
#ifndef HIPPODROME_ENGINE_TOKENIZER_UTF8_H_
#define HIPPODROME_ENGINE_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hippodrome {

struct Utf8Char {
  enum class Kind : uint8_t {
    kValid,
    kInvalid,     // no character begins like this
    kIncomplete,  // the text ends within a character
  };
  Kind kind = Kind::kValid;
  size_t length = 0;       // bytes: the character, or the longest part that could begin one (>= 1)
  int32_t code_point = 0;  // of a valid character
};

// The first character of `text`. REQUIRES: text is not empty.
Utf8Char FirstUtf8Char(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_UTF8_H_
