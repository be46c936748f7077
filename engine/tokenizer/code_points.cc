#include "engine/tokenizer/code_points.h"

#include <cstddef>

#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

// Bytes of the first `count` code points of `text`, or of all of it.
size_t PrefixBytes(std::string_view text, int64_t count) {
  size_t bytes = 0;
  for (int64_t i = 0; i < count && bytes < text.size(); ++i) {
    bytes += FirstUtf8Char(text.substr(bytes)).length;
  }
  return bytes;
}

}  // namespace

std::string_view SliceCodePoints(std::string_view text, int64_t begin, int64_t end) {
  const std::string_view rest = text.substr(PrefixBytes(text, begin));
  return rest.substr(0, PrefixBytes(rest, end - begin));
}

}  // namespace hippodrome
