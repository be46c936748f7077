#include "tools/train/session/metrics_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/status.h"
#include "tools/command_line/text_file.h"
#include "tools/train/checkpoint/durable_files.h"

namespace hippodrome {
namespace {

std::string ToText(const MetricsLine& line) {
  nlohmann::ordered_json json = {
      {"step", line.step}, {"tokens", line.tokens}, {"seconds", line.seconds}};
  for (const auto& [name, value] : line.values) json[name] = value;
  return json.dump() + "\n";
}

absl::StatusOr<MetricsLine> ParseLine(std::string_view text) {
  HIPPODROME_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(std::string(text)));
  ObjectReader reader(json, "");
  MetricsLine line;
  line.step = reader.Integer("step", {0, INT64_MAX});
  line.tokens = reader.Integer("tokens", {0, INT64_MAX}, 0);
  HIPPODROME_RETURN_IF_ERROR(reader.status());
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() || name == "step" || name == "tokens") continue;
    (name == "seconds" ? line.seconds : line.values[name]) = value.get<double>();
  }
  return line;
}

// Splits the next line, without its end, off `rest`; false when none is whole.
bool TakeLine(std::string_view& rest, std::string_view& line) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return false;
  line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

// The lines of `text` up to `step`.
std::string Keep(std::string_view text, int64_t step) {
  std::string kept;
  std::string_view line;
  while (TakeLine(text, line)) {
    const absl::StatusOr<MetricsLine> parsed = ParseLine(line);
    if (parsed.ok() && parsed->step <= step) kept.append(line).push_back('\n');
  }
  return kept;
}

absl::Status TakeLinesOut(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const std::string kept = Keep(text, step);
  return kept == text ? absl::OkStatus() : WriteFileDurably(path, kept);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path,
                                                             int64_t step) {
  HIPPODROME_RETURN_IF_ERROR(TakeLinesOut(path, step));
  FILE* file = std::fopen(path.c_str(), "abe");
  if (file == nullptr) return Internal(path + ": " + std::strerror(errno));
  return std::unique_ptr<MetricsLog>(new MetricsLog(path, file));
}

MetricsLog::~MetricsLog() { std::fclose(file_); }

absl::Status MetricsLog::Append(const MetricsLine& line) {
  const std::string text = ToText(line);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
  return written ? absl::OkStatus() : Internal(path_ + ": " + std::strerror(errno));
}

absl::StatusOr<std::vector<MetricsLine>> ReadMetrics(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  std::vector<MetricsLine> lines;
  std::string_view rest = text;
  std::string_view line;
  while (TakeLine(rest, line)) {
    absl::StatusOr<MetricsLine> parsed = ParseLine(line);
    if (!parsed.ok()) {
      return InvalidArgument(
          fmt::format("{} line {}: {}", path, lines.size() + 1, Message(parsed.status())));
    }
    lines.push_back(*std::move(parsed));
  }
  return lines;
}

}  // namespace hippodrome
