// Who a client says it is, and whom it trusts: options of the commands that call a server.
#ifndef HIPPODROME_TOOLS_CLIENT_CLIENT_SECURITY_H_
#define HIPPODROME_TOOLS_CLIENT_CLIENT_SECURITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/help.h"

namespace hippodrome {

// Texts in PEM. Not to be printed: it has secrets.
struct ClientSecurity {
  std::string api_key;      // empty: none is sent
  std::string authorities;  // whose servers are trusted; empty: no TLS
  std::string certificate;  // the client's own, with those that it leads to; empty: none
  std::string private_key;  // of `certificate`

  bool tls() const { return !authorities.empty(); }
};

// --api-key-file, --tls-ca, --tls-client-cert, --tls-client-key.
std::vector<Option> ClientSecurityOptions();

// Reads the files that those name. Errors: of usage, where a certificate comes without its key or
// without --tls-ca; of files; kInvalidArgument for a file that holds no key. No error tells what a
// file holds.
absl::StatusOr<ClientSecurity> ReadClientSecurity(const CommandLine& line);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CLIENT_CLIENT_SECURITY_H_
