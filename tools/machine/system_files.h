// What Linux says of the machine in /proc and /sys. All of it may be missing, in containers most of
// all: what is not there is empty, and never an error.
#ifndef HIPPODROME_TOOLS_MACHINE_SYSTEM_FILES_H_
#define HIPPODROME_TOOLS_MACHINE_SYSTEM_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hippodrome {

// A file without the white space at its end. `root` is empty for the machine itself; tests have
// trees of their own.
std::string ReadSystemFile(const std::string& root, const std::string& path);

// Of lines as "model name : AMD EPYC", what stands behind the first colon of the first line that
// is called `name`, without white space around it.
std::string SystemField(std::string_view text, std::string_view name);

// A size as "16384 kB" or "32K" in bytes; nothing where it is none.
std::optional<int64_t> ParseSystemSize(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MACHINE_SYSTEM_FILES_H_
