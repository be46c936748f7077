#include "tools/machine/system_files.h"

#include <algorithm>
#include <charconv>

#include "engine/base/read_file.h"

namespace hippodrome {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;  // /proc/cpuinfo has 1.5 KB for each processor
constexpr char kWhiteSpace[] = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

}  // namespace

std::string ReadSystemFile(const std::string& root, const std::string& path) {
  const auto text = ReadSmallFile(root + path, kMostBytes);
  return text.ok() ? std::string(Trimmed(*text)) : std::string();
}

std::string SystemField(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || Trimmed(line.substr(0, colon)) != name) continue;
    return std::string(Trimmed(line.substr(colon + 1)));
  }
  return "";
}

std::optional<int64_t> ParseSystemSize(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 0) return std::nullopt;
  const std::string_view unit = Trimmed({stop, static_cast<size_t>(end - stop)});
  const int shift = unit == "kB" || unit == "K" ? 10 : unit == "M" ? 20 : unit.empty() ? 0 : -1;
  if (shift < 0 || value > INT64_MAX >> shift) return std::nullopt;
  return value << shift;
}

}  // namespace hippodrome
