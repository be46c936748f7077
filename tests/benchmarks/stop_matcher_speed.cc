// stop_matcher_speed: nanoseconds for each byte of a text that nearly matches sixteen stop strings
// of up to 256 bytes all the time, for texts of growing length, whole and byte by byte.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/batching/stop_matcher.h"

namespace hippodrome {
namespace {

// Of a text without a stop; the program ends where one is found, or a byte is lost.
double NanosecondsPerByte(const std::vector<std::string>& stops, std::string_view text,
                          size_t piece) {
  StopMatcher matcher(stops);
  size_t returned = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t at = 0; at < text.size(); at += piece) {
    returned += matcher.Append(text.substr(at, piece)).size();
  }
  returned += matcher.Finish().size();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  if (matcher.stopped() || returned != text.size()) std::abort();
  return time.count() / static_cast<double>(text.size());
}

void Measure(const char* name, const std::vector<std::string>& stops, const std::string& unit) {
  for (const size_t size : {size_t{1} << 12, size_t{1} << 16, size_t{1} << 20, size_t{1} << 24}) {
    std::string text;
    while (text.size() < size) text += unit;
    fmt::print("{:26} {:>10} bytes: {:6.1f} ns a byte whole, {:6.1f} byte by byte\n", name,
               text.size(), NanosecondsPerByte(stops, text, text.size()),
               NanosecondsPerByte(stops, text, 1));
  }
}

void MeasureAll() {
  std::vector<std::string> rows, alternating;
  for (int i = 0; i < 16; ++i) {
    rows.push_back(std::string(255 - i, 'a') + "b");
    std::string stop;
    while (static_cast<int>(stop.size()) < 254 - i) stop += "ab";
    alternating.push_back(stop + "c");
  }
  Measure("a..ab in a..a", rows, "a");
  Measure("a..ab in a..aca..a", rows, std::string(254, 'a') + "c");
  Measure("abab..c in abab..", alternating, "ab");
  Measure("none", {}, "a");
}

}  // namespace
}  // namespace hippodrome

int main() { hippodrome::MeasureAll(); }
