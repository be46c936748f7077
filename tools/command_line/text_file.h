// Whole files in and out.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_TEXT_FILE_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_TEXT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// The bytes of the file. Errors name the path and the system's reason.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);
// Replaces the file.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_TEXT_FILE_H_
