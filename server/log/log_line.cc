#include "server/log/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

namespace hippodrome {
namespace {

// Of a text, before it is escaped.
constexpr size_t kMostTextBytes = 512;
constexpr std::string_view kEnd = "}\n";

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

// As a JSON string. JSON may hold the control character DEL as it is; a terminal should not get it.
std::string Quoted(std::string_view text) {
  text = text.substr(0, kMostTextBytes);
  if (IsPlain(text)) return fmt::format("\"{}\"", text);
  const std::string json = nlohmann::json(std::string(text))
                               .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string quoted;
  for (const char c : json) {
    if (c == '\x7f') {
      quoted += "\\u007f";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string Timestamp(std::chrono::system_clock::time_point now) {
  using std::chrono::floor;
  const auto whole = floor<std::chrono::seconds>(now);
  const auto micros = floor<std::chrono::microseconds>(now - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, micros);
}

}  // namespace

const char* Name(LogLevel level) {
  constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  return kNames[static_cast<size_t>(level)];
}

LogLine::LogLine(LogLevel level, std::string_view event, std::chrono::system_clock::time_point now)
    : level_(level),
      text_(fmt::format(R"({{"ts":"{}","level":"{}","event":"{}")", Timestamp(now), Name(level),
                        event)) {}

LogLine& LogLine::Text(const char* name, std::string_view value) {
  Add(name, Quoted(value));
  return *this;
}

LogLine& LogLine::Integer(const char* name, int64_t value) {
  Add(name, fmt::format_int(value).str());
  return *this;
}

LogLine& LogLine::Seconds(const char* name, std::chrono::duration<double> value) {
  Add(name, fmt::format("{:.6f}", value.count()));
  return *this;
}

void LogLine::Add(const char* name, std::string_view json) {
  const std::string_view key = name;
  constexpr size_t kMarks = 4;  // ,"":
  if (text_.size() + key.size() + json.size() + kMarks + kEnd.size() > kMostBytes) return;
  text_.append(",\"").append(key).append("\":").append(json);
}

std::string LogLine::Take() {
  text_ += kEnd;
  return std::move(text_);
}

}  // namespace hippodrome
