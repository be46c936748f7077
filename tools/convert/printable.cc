#include "tools/convert/printable.h"

namespace hippodrome {

std::string Printable(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string result(text.substr(0, kLongest));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kLongest ? result + "..." : result;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string result;
  for (const int64_t size : shape) {
    result += (result.empty() ? "" : ", ") + std::to_string(size);
  }
  return "[" + result + "]";
}

}  // namespace hippodrome
