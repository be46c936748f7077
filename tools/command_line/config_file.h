// Options from a file instead of the command line.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_CONFIG_FILE_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_CONFIG_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/command_line/help.h"

namespace hippodrome {

// The option that names the file.
Option ConfigOption();

// What the file at `path` says, as text for each option. It is a JSON object whose members have the
// names of options; the values are strings and numbers, true or false for switches, and arrays of
// strings or numbers for options that may be repeated. Errors: usage errors that name the file, the
// member and what was expected.
absl::StatusOr<std::map<std::string, std::vector<std::string>>> ReadConfigFile(
    const std::string& path, const std::map<std::string, Option>& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_CONFIG_FILE_H_
