// Signatures of states, by which a server knows its own.
#ifndef HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_
#define HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_

#include <string>

#include "engine/state/state_file.h"

namespace hippodrome {

// HMAC-SHA256 (RFC 2104) with `key`, in hexadecimal; any thread may call it.
StateSigner HmacSha256(std::string key);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_STATE_SIGNATURE_H_
