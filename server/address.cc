#include "server/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
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

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string ClientOf(const std::string& host) {
  in6_addr address;
  // A zone, as in fe80::1%eth0, is none of the client's.
  if (inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) != 1) return host;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, address.s6_addr + 12, text.data(), text.size());
    return text.data();
  }
  if (IN6_IS_ADDR_LOOPBACK(&address)) return "::1";
  std::fill(address.s6_addr + 8, address.s6_addr + 16, 0);
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

}  // namespace hippodrome
