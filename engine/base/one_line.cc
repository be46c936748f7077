#include "engine/base/one_line.h"

namespace hippodrome {

std::string OneLine(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string line(text.substr(0, kLongest));
  for (char& c : line) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  if (text.size() > kLongest) line += "...";
  return line;
}

}  // namespace hippodrome
