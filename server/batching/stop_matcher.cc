#include "server/batching/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace hippodrome {
namespace {

std::vector<size_t> Borders(const std::string& text) {
  std::vector<size_t> borders(text.size() + 1, 0);
  for (size_t n = 1; n < text.size(); ++n) {
    size_t k = borders[n];
    while (k > 0 && text[n] != text[k]) k = borders[k];
    borders[n + 1] = text[n] == text[k] ? k + 1 : 0;
  }
  return borders;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    std::vector<size_t> borders = Borders(stop);
    patterns_.push_back({std::move(stop), std::move(borders), 0});
  }
}

size_t StopMatcher::Advance(char byte) {
  size_t complete = 0;
  for (Pattern& pattern : patterns_) {
    size_t& k = pattern.matched;
    while (k > 0 && pattern.text[k] != byte) k = pattern.borders[k];
    if (pattern.text[k] == byte) ++k;
    if (k == pattern.text.size()) complete = std::max(complete, k);
  }
  return complete;
}

size_t StopMatcher::LongestPartial() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.matched);
  return longest;
}

std::string StopMatcher::Append(std::string_view text) {
  if (stopped_) return "";
  if (patterns_.empty()) return std::string(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t complete = Advance(text[i]);
    if (complete == 0) continue;
    stopped_ = true;
    held_.append(text.substr(0, i + 1));
    held_.resize(held_.size() - complete);
    return std::exchange(held_, "");
  }
  held_.append(text);
  const size_t certain = held_.size() - LongestPartial();
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopMatcher::Finish() { return std::exchange(held_, ""); }

}  // namespace hippodrome
