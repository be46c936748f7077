#include "engine/tokenizer/gpt2_split.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>

#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

enum class Kind : uint8_t { kSpace, kLetter, kNumber, kOther };

bool IsSpace(int32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

Kind KindOf(int32_t code_point) {
  if (IsSpace(code_point)) return Kind::kSpace;
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::kNumber;
    default:
      return Kind::kOther;
  }
}

struct Symbol {
  Kind kind = Kind::kOther;
  size_t length = 1;
};

Symbol FirstSymbol(std::string_view text) {
  static const std::array<Kind, 128> ascii = [] {
    std::array<Kind, 128> kinds;
    for (int32_t c = 0; c < 128; ++c) kinds[c] = KindOf(c);
    return kinds;
  }();
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  if (lead < 128) return {ascii[lead], 1};
  const Utf8Char character = FirstUtf8Char(text);
  if (character.kind != Utf8Char::Kind::kValid) return {Kind::kOther, 1};
  return {KindOf(character.code_point), character.length};
}

// Length of the symbols of that kind from `start` on, plus `start`.
size_t RunEnd(std::string_view text, size_t start, Kind kind) {
  size_t end = start;
  while (end < text.size()) {
    const Symbol symbol = FirstSymbol(text.substr(end));
    if (symbol.kind != kind) break;
    end += symbol.length;
  }
  return end;
}

// 0 if `text` does not begin with one.
size_t ContractionLength(std::string_view text) {
  for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(suffix)) return suffix.size();
  }
  return 0;
}

// A run of spaces leaves its last one to the word behind it.
size_t SpacesLength(std::string_view text) {
  size_t last = 0;
  size_t end = 0;
  while (end < text.size()) {
    const Symbol symbol = FirstSymbol(text.substr(end));
    if (symbol.kind != Kind::kSpace) return last > 0 ? last : end;
    last = end;
    end += symbol.length;
  }
  return end;
}

}  // namespace

size_t FirstWordLength(std::string_view text) {
  if (text[0] == '\'') {
    const size_t contraction = ContractionLength(text);
    if (contraction > 0) return contraction;
  }
  const size_t start = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Kind kind = FirstSymbol(text.substr(start)).kind;
  return kind == Kind::kSpace ? SpacesLength(text) : RunEnd(text, start, kind);
}

size_t SettledLength(std::string_view text) {
  size_t settled = 0;
  size_t last = 0;  // where the last word begins
  for (size_t i = 0; i < text.size(); i += FirstWordLength(text.substr(i))) {
    settled = last;
    last = i;
  }
  return settled;
}

size_t TrailingSpaceLength(std::string_view text) {
  size_t end = 0;  // of what is no space
  for (size_t i = 0; i < text.size();) {
    const Symbol symbol = FirstSymbol(text.substr(i));
    i += symbol.length;
    if (symbol.kind != Kind::kSpace) end = i;
  }
  return text.size() - end;
}

}  // namespace hippodrome
