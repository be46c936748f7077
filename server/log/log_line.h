// One line of a log: a JSON object.
#ifndef HIPPODROME_SERVER_LOG_LOG_LINE_H_
#define HIPPODROME_SERVER_LOG_LOG_LINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/options.h"

namespace hippodrome {

// "error", "warning", "info" or "debug".
const char* Name(LogLevel level);

// Members in the order of the calls, behind "ts" (RFC 3339 with microseconds, UTC), "level" and
// "event". Texts may be of anything: what is no printable ASCII is escaped, bytes that are no UTF-8
// are replaced, and what is long is cut.
class LogLine {
 public:
  // Of all lines, with the line feed: a pipe takes so many bytes as one piece.
  static constexpr size_t kMostBytes = 4096;

  // `event` and the names are plain words of this program.
  LogLine(LogLevel level, std::string_view event,
          std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

  LogLine& Text(const char* name, std::string_view value);
  LogLine& Integer(const char* name, int64_t value);
  // With microseconds.
  LogLine& Seconds(const char* name, std::chrono::duration<double> value);

  LogLevel level() const { return level_; }
  // The whole line, with its line feed. Members for which there was no room are missing.
  std::string Take();

 private:
  void Add(const char* name, std::string_view json);

  LogLevel level_;
  std::string text_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_LOG_LOG_LINE_H_
