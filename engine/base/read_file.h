// Reads the small text files of a model directory.
#ifndef HIPPODROME_ENGINE_BASE_READ_FILE_H_
#define HIPPODROME_ENGINE_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

// The whole file. Errors: kNotFound when it does not exist; kInvalidArgument when it cannot be read
// or has more than `most` bytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_READ_FILE_H_
