#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

// What a leading byte allows (The Unicode Standard, Table 3-7).
struct Form {
  size_t length = 0;   // of the character; 0: no character begins with this byte
  uint8_t low = 0x80;  // of the second byte
  uint8_t high = 0xbf;
};

Form FormOf(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xc2) return {0};
  if (lead < 0xe0) return {2};
  if (lead == 0xe0) return {3, 0xa0, 0xbf};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead < 0xf0) return {3};
  if (lead == 0xf0) return {4, 0x90, 0xbf};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  if (lead < 0xf4) return {4};
  return {0};
}

}  // namespace

Utf8Char FirstUtf8Char(std::string_view text) {
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  Form form = FormOf(lead);
  if (form.length == 0) return {Utf8Char::Kind::kInvalid, 1};
  int32_t code_point = form.length == 1 ? lead : lead & (0x7f >> form.length);
  for (size_t i = 1; i < form.length; ++i) {
    if (i == text.size()) return {Utf8Char::Kind::kIncomplete, i};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte < form.low || byte > form.high) return {Utf8Char::Kind::kInvalid, i};
    code_point = code_point << 6 | (byte & 0x3f);
    form.low = 0x80;
    form.high = 0xbf;
  }
  return {Utf8Char::Kind::kValid, form.length, code_point};
}

}  // namespace hippodrome
