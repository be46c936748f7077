// Reads files that others must not read.
#ifndef HIPPODROME_ENGINE_BASE_GUARDED_FILE_H_
#define HIPPODROME_ENGINE_BASE_GUARDED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

// The whole file, which others than its owner and group may not read, and its owner alone may
// write. Errors: kFailedPrecondition, naming the file, for another mode, more than `most` bytes,
// what is no file, and what cannot be read.
absl::StatusOr<std::string> ReadGuardedFile(const std::string& path, int64_t most);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_GUARDED_FILE_H_
