// Text as Python's str treats it, which published scripts are written in.
#ifndef HIPPODROME_TOOLS_EVALUATE_PYTHON_TEXT_H_
#define HIPPODROME_TOOLS_EVALUATE_PYTHON_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// The characters of UTF-8. What is not UTF-8 is dropped.
std::u32string ToCodePoints(std::string_view text);
std::string ToUtf8(std::u32string_view text);

// str.isspace() of one character.
bool IsPythonSpace(char32_t c);
// Whether it is one of string.punctuation.
bool IsAsciiPunctuation(char32_t c);

// str.strip().
std::u32string_view PythonTrim(std::u32string_view text);
// str.split().
std::vector<std::u32string> PythonWords(std::u32string_view text);
// Character by character: what would become several stays as it is.
std::u32string PythonLower(std::u32string_view text);
// str.capitalize().
std::u32string PythonCapitalize(std::u32string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_PYTHON_TEXT_H_
