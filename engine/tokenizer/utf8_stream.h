// Turns a stream of bytes into a stream of valid UTF-8.
#ifndef HIPPODROME_ENGINE_TOKENIZER_UTF8_STREAM_H_
#define HIPPODROME_ENGINE_TOKENIZER_UTF8_STREAM_H_

#include <string>
#include <string_view>

namespace hippodrome {

// Holds back an incomplete character until it is complete, and replaces what can never become one
// by U+FFFD (one per maximal ill-formed part, as the Unicode Standard recommends). The
// concatenation of all results is the same however the input was cut. Not thread-safe.
class Utf8Stream {
 public:
  // Adds bytes; returns what is now certain.
  std::string Append(std::string_view bytes);
  // Ends the stream: the replacement of what was held back, or "".
  std::string Finish();
  // Whether a character is held back.
  bool incomplete() const { return !held_.empty(); }
  // What there is of it: 3 bytes at most.
  const std::string& held() const { return held_; }

 private:
  std::string held_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_UTF8_STREAM_H_
