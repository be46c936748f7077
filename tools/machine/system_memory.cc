#include "tools/machine/system_memory.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tools/machine/system_files.h"

namespace hippodrome {
namespace {

struct AddressRange {
  uintptr_t begin = 0, end = 0;
};

// Of a line of smaps with which a mapping begins, "7f0000-7fffff rw-p ...".
std::optional<AddressRange> ParseMapping(std::string_view line) {
  constexpr int kHexadecimal = 16;
  AddressRange range;
  const char* end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, range.begin, kHexadecimal);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, range.end, kHexadecimal);
  if (last.ec != std::errc() || last.ptr == end || *last.ptr != ' ') return std::nullopt;
  return range;
}

}  // namespace

SystemMemory ReadSystemMemory(const std::string& root) {
  const std::string text = ReadSystemFile(root, "/proc/meminfo");
  return {ParseSystemSize(SystemField(text, "MemTotal")),
          ParseSystemSize(SystemField(text, "MemAvailable"))};
}

std::string ReadHugePageMode(const std::string& root) {
  const std::string modes = ReadSystemFile(root, "/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = modes.find('[');
  const size_t close = modes.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return modes.substr(open + 1, close - open - 1);
}

std::optional<int64_t> BytesInHugePages(const void* start, size_t bytes, const std::string& root) {
  const auto begin = reinterpret_cast<uintptr_t>(start);
  std::optional<int64_t> sum;
  bool inside = false;
  std::istringstream lines(ReadSystemFile(root, "/proc/self/smaps"));
  for (std::string line; std::getline(lines, line);) {
    if (const auto mapping = ParseMapping(line)) {
      inside = mapping->begin < begin + bytes && begin < mapping->end;
    }
    if (!inside) continue;
    if (const auto huge = ParseSystemSize(SystemField(line, "AnonHugePages"))) {
      sum = std::min(static_cast<int64_t>(bytes), sum.value_or(0) + *huge);
    }
  }
  return sum;
}

}  // namespace hippodrome
