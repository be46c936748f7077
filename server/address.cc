#include "server/address.h"

#include <charconv>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<HostPort> ParseAddress(const std::string& text) {
  const absl::Status error =
      InvalidArgument("'" + text + "' is not an address: expected HOST:PORT or [HOST]:PORT");
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return error;
  HostPort address;
  address.host = text.substr(0, colon);
  const bool brackets = address.host.front() == '[' && address.host.back() == ']';
  if (brackets) address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty() || (!brackets && address.host.find(':') != std::string::npos)) {
    return error;
  }
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (code != std::errc() || rest != end) return error;
  return address;
}

std::string ToText(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  const std::string host = brackets ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

}  // namespace hippodrome
