// Reads a data set from disk.
#ifndef HIPPODROME_TOOLS_EVALUATE_DATA_FILE_H_
#define HIPPODROME_TOOLS_EVALUATE_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/command_line/help.h"

namespace hippodrome {

constexpr int64_t kMostDataBytes = int64_t{1} << 31;

// Of the file that most tasks read.
inline Option DataOption(const std::string& meaning) {
  return {"data", "FILE", meaning + "; may be packed by gzip"};
}

// The bytes of the file; of a gzip file, unpacked. Errors name the path: of reading, and
// kInvalidArgument for gzip data that is broken or has more than kMostDataBytes unpacked.
absl::StatusOr<std::string> ReadDataFile(const std::string& path);

// The error of reading what is in the file at `path`, with its name in front.
absl::Status InFile(const std::string& path, const absl::Status& status);

// The contents of a gzip file, all its members. Errors: kInvalidArgument for data that is broken or
// ends early, and for more than `most` bytes.
absl::StatusOr<std::string> Gunzip(std::string_view packed, int64_t most);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_DATA_FILE_H_
