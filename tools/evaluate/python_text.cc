#include "tools/evaluate/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>

namespace hippodrome {

std::u32string ToCodePoints(std::string_view text) {
  std::u32string result;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &c);
    i += static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1));
    if (length >= 1) result.push_back(static_cast<char32_t>(c));
  }
  return result;
}

std::string ToUtf8(std::u32string_view text) {
  std::string result;
  for (const char32_t c : text) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
    result.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }
  return result;
}

bool IsPythonSpace(char32_t c) {
  if ((c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool IsAsciiPunctuation(char32_t c) { return c < 0x80 && std::ispunct(static_cast<int>(c)) != 0; }

std::u32string_view PythonTrim(std::u32string_view text) {
  while (!text.empty() && IsPythonSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsPythonSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::u32string> PythonWords(std::u32string_view text) {
  std::vector<std::u32string> words;
  bool in_word = false;
  for (const char32_t c : text) {
    const bool space = IsPythonSpace(c);
    if (!space && !in_word) words.emplace_back();
    if (!space) words.back().push_back(c);
    in_word = !space;
  }
  return words;
}

std::u32string PythonLower(std::u32string_view text) {
  std::u32string result(text);
  for (char32_t& c : result) {
    c = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
  return result;
}

std::u32string PythonCapitalize(std::u32string_view text) {
  std::u32string result = PythonLower(text);
  if (!result.empty()) {
    const auto first = static_cast<utf8proc_int32_t>(text.front());
    result.front() = static_cast<char32_t>(utf8proc_totitle(first));
  }
  return result;
}

}  // namespace hippodrome
