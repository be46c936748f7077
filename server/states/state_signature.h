// Signatures of states, by which a server knows its own.
#ifndef HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_
#define HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/state/state_file.h"

namespace hippodrome {

// HMAC-SHA256 (RFC 2104) with `key`, in hexadecimal; any thread may call it.
StateSigner HmacSha256(std::string key);

// The key in a file, of 32 to 1,024 bytes without the ends of lines behind it. Errors:
// kInvalidArgument for another length, those of ReadGuardedFile().
absl::StatusOr<std::string> ReadStateKey(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_
