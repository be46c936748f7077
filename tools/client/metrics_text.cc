#include "tools/client/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool BeginsName(char c, bool colon) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
}

std::string TakeName(std::string_view& rest, bool colon) {
  size_t size = 0;
  while (size < rest.size() &&
         (BeginsName(rest[size], colon) || (size > 0 && rest[size] >= '0' && rest[size] <= '9'))) {
    ++size;
  }
  std::string name(rest.substr(0, size));
  rest.remove_prefix(size);
  return name;
}

bool Take(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) return false;
  rest.remove_prefix(1);
  return true;
}

// Behind the opening quote, to the closing one.
std::optional<std::string> TakeQuoted(std::string_view& rest) {
  std::string text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return text;
    if (c != '\\') {
      text += c;
      continue;
    }
    if (Take(rest, 'n')) {
      text += '\n';
    } else if (Take(rest, '\\')) {
      text += '\\';
    } else if (Take(rest, '"')) {
      text += '"';
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<double> Number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || rest != end || text.empty()) return std::nullopt;
  return value;
}

// Behind the opening brace, to the closing one.
bool TakeLabels(std::string_view& rest, std::map<std::string, std::string>& labels) {
  while (!Take(rest, '}')) {
    std::string name = TakeName(rest, false);
    if (name.empty() || !Take(rest, '=') || !Take(rest, '"')) return false;
    std::optional<std::string> value = TakeQuoted(rest);
    if (!value || !labels.emplace(std::move(name), *std::move(value)).second) return false;
    if (!Take(rest, ',') && (rest.empty() || rest.front() != '}')) return false;
  }
  return true;
}

std::optional<MetricSample> ReadSample(std::string_view rest) {
  MetricSample sample;
  sample.name = TakeName(rest, true);
  if (sample.name.empty()) return std::nullopt;
  if (Take(rest, '{') && !TakeLabels(rest, sample.labels)) return std::nullopt;
  if (!Take(rest, ' ')) return std::nullopt;
  const size_t space = rest.find(' ');
  const std::optional<double> value = Number(rest.substr(0, space));
  if (!value) return std::nullopt;
  sample.value = *value;
  if (space != std::string_view::npos) {
    const std::optional<double> time = Number(rest.substr(space + 1));
    if (!time || *time != std::floor(*time)) return std::nullopt;
  }
  return sample;
}

// "# TYPE name kind"; all other comments say nothing.
bool ReadComment(std::string_view line) {
  constexpr std::string_view kType = "# TYPE ";
  if (!line.starts_with(kType)) return true;
  line.remove_prefix(kType.size());
  if (TakeName(line, true).empty() || !Take(line, ' ')) return false;
  return line == "counter" || line == "gauge" || line == "histogram" || line == "summary" ||
         line == "untyped";
}

bool Matches(const MetricSample& sample, const LabelMatch& match) {
  return std::all_of(match.begin(), match.end(), [&](const auto& wanted) {
    const auto label = sample.labels.find(wanted.first);
    return label != sample.labels.end() && label->second == wanted.second;
  });
}

}  // namespace

absl::StatusOr<MetricsText> MetricsText::Parse(std::string_view text) {
  MetricsText metrics;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string where = "metrics, line " + std::to_string(number) + ": ";
    if (line.empty()) continue;
    if (line.front() == '#') {
      if (!ReadComment(line)) return InvalidArgument(where + "expected # TYPE NAME KIND");
      continue;
    }
    std::optional<MetricSample> sample = ReadSample(line);
    if (!sample) {
      return InvalidArgument(where + "expected NAME{LABEL=\"VALUE\",...} NUMBER");
    }
    if (!seen.emplace(sample->name, sample->labels).second) {
      return InvalidArgument(where + sample->name + " is there twice");
    }
    metrics.samples_.push_back(*std::move(sample));
  }
  return metrics;
}

std::optional<double> MetricsText::Sum(const std::string& name, const LabelMatch& match) const {
  std::optional<double> sum;
  for (const MetricSample& sample : samples_) {
    if (sample.name == name && Matches(sample, match)) sum = sum.value_or(0) + sample.value;
  }
  return sum;
}

std::vector<std::string> MetricsText::Values(const std::string& name,
                                             const std::string& label) const {
  std::set<std::string> values;
  for (const MetricSample& sample : samples_) {
    const auto found = sample.labels.find(label);
    if (sample.name == name && found != sample.labels.end()) values.insert(found->second);
  }
  return {values.begin(), values.end()};
}

std::map<double, double> MetricsText::Buckets(const std::string& histogram,
                                              const LabelMatch& match) const {
  std::map<double, double> buckets;
  for (const MetricSample& sample : samples_) {
    if (sample.name != histogram + "_bucket" || !Matches(sample, match)) continue;
    const auto bound = sample.labels.find("le");
    if (bound == sample.labels.end()) continue;
    const std::optional<double> value = bound->second == "+Inf" ? kInfinity : Number(bound->second);
    if (value) buckets[*value] += sample.value;
  }
  return buckets;
}

std::optional<double> BucketQuantile(const std::map<double, double>& before,
                                     const std::map<double, double>& now, double part) {
  if (now.empty()) return std::nullopt;
  const auto count_before = [&](double bound) {
    const auto found = before.find(bound);
    return found == before.end() ? 0 : found->second;
  };
  const auto& [last_bound, last_count] = *now.rbegin();
  const bool anew = last_count < count_before(last_bound);
  const auto came = [&](double bound, double count) {
    return anew ? count : count - count_before(bound);
  };
  const double total = came(last_bound, last_count);
  if (!(total > 0)) return std::nullopt;
  const double rank = part * total;
  double lower = 0, below = 0;
  for (const auto& [bound, count] : now) {
    const double up_to = came(bound, count);
    if (up_to >= rank && up_to > below) {
      if (bound == kInfinity) return lower;
      return lower + (bound - lower) * (rank - below) / (up_to - below);
    }
    if (bound != kInfinity) lower = bound;
    below = up_to;
  }
  return lower;
}

}  // namespace hippodrome
