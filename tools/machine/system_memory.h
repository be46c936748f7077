// Memory of the machine, and the pages that the process has it in.
#ifndef HIPPODROME_TOOLS_MACHINE_SYSTEM_MEMORY_H_
#define HIPPODROME_TOOLS_MACHINE_SYSTEM_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace hippodrome {

// `root`, of all of these: as that of ReadSystemFile().

struct SystemMemory {
  std::optional<int64_t> total_bytes, available_bytes;  // nothing: unknown
};
SystemMemory ReadSystemMemory(const std::string& root = "");

// Who gets transparent huge pages: "always", "madvise" or "never"; empty: unknown.
std::string ReadHugePageMode(const std::string& root = "");

// How many of the `bytes` at `start` are in transparent huge pages now, as far as the system tells
// the mappings apart; nothing where it does not say.
std::optional<int64_t> BytesInHugePages(const void* start, size_t bytes,
                                        const std::string& root = "");

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MACHINE_SYSTEM_MEMORY_H_
