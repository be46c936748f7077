#include "server/log/log.h"

#include <atomic>
#include <memory>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

std::atomic<LogLevel> level = LogLevel::kInfo;

// Never destroyed: threads of libraries log to the end.
LogFile& ServerLog() {
  static LogFile* const file = new LogFile();
  return *file;
}

}  // namespace

LogFile& AccessLog() {
  static LogFile* const file = new LogFile();
  return *file;
}

absl::StatusOr<std::function<void()>> OpenLogs(const LogOptions& options) {
  struct Files {
    OpenFile server, access;
  };
  const auto files = std::make_shared<Files>();
  HIPPODROME_ASSIGN_OR_RETURN(files->server, OpenFile::ToAppend("-"));
  const bool access = !options.access_log.empty();
  if (access) {
    HIPPODROME_ASSIGN_OR_RETURN(files->access, OpenFile::ToAppend(options.access_log));
  }
  return [files, access, now = options.level] {
    level.store(now);
    ServerLog().Open(std::move(files->server));
    if (access) {
      AccessLog().Open(std::move(files->access));
    } else {
      AccessLog().Close();
    }
  };
}

void CloseLogs() {
  AccessLog().Close();
  ServerLog().Close();
}

bool Logs(LogLevel wanted) {
  return wanted <= level.load(std::memory_order_relaxed) && ServerLog().open();
}

void Log(LogLine line) {
  if (Logs(line.level())) ServerLog().Write(line.Take());
}

int64_t DroppedLogLines() { return ServerLog().dropped() + AccessLog().dropped(); }

}  // namespace hippodrome
