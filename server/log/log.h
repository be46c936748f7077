// The logs of the process: what happens to the server, and one line for each call.
//
// No prompt, text, key, address of a client or raw path may get into them.
#ifndef HIPPODROME_SERVER_LOG_LOG_H_
#define HIPPODROME_SERVER_LOG_LOG_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/log/log_file.h"
#include "server/log/log_line.h"
#include "server/options.h"

namespace hippodrome {

// Opens the files; until then, lines go nowhere. The result puts that into force: standard error
// for what happens, at `level`, and the access log. So both are opened anew too, where they were
// moved away. Errors: kInvalidArgument naming the file.
absl::StatusOr<std::function<void()>> OpenLogs(const LogOptions& options);
// Writes what is left.
void CloseLogs();

// Whether lines of that level are written.
bool Logs(LogLevel level);
void Log(LogLine line);

// Of calls.
LogFile& AccessLog();

// Lines of both that were dropped, since the process began.
int64_t DroppedLogLines();

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_LOG_LOG_H_
