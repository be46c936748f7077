// HOST:PORT, as operators write it.
#ifndef HIPPODROME_SERVER_ADDRESS_H_
#define HIPPODROME_SERVER_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "HOST:PORT" or "[HOST]:PORT". Errors: kInvalidArgument with the text and what was expected.
absl::StatusOr<HostPort> ParseAddress(const std::string& text);
std::string ToText(const HostPort& address);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ADDRESS_H_
