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
// Whether only this machine reaches `host`, as it is written: 127.0.0.0/8, ::1 or localhost.
bool IsLoopback(const std::string& host);

// The client that a numeric address, without port, belongs to: an IPv4 address itself, also when
// mapped into IPv6; the first 64 bits of an IPv6 address, whose other 64 are anybody's to choose.
// What is no address is a client by itself.
std::string ClientOf(const std::string& host);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ADDRESS_H_
