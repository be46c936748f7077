#include "tools/client/client_security.h"

#include <algorithm>

#include "engine/base/status.h"
#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

// What a header can carry, and no more than a line.
absl::StatusOr<std::string> ReadApiKey(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::string key, ReadTextFile(path));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  const auto visible = [](char c) { return c > ' ' && c <= '~'; };
  if (key.empty() || !std::all_of(key.begin(), key.end(), visible)) {
    return InvalidArgument(path + ": expected a line with an API key, without spaces");
  }
  return key;
}

absl::StatusOr<std::string> ReadPem(const CommandLine& line, const std::string& option) {
  const std::string path = line.Text(option);
  HIPPODROME_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
  if (text.find("-----BEGIN ") == std::string::npos) {
    return InvalidArgument(path + ": expected PEM for --" + option);
  }
  return text;
}

}  // namespace

std::vector<Option> ClientSecurityOptions() {
  return {{"api-key-file", "FILE", "has the API key to send, on its only line"},
          {"tls-ca", "FILE", "call over TLS, and trust servers of these authorities (PEM)"},
          {"tls-client-cert", "FILE", "certificate to show to the server (PEM)"},
          {"tls-client-key", "FILE", "its private key (PEM)"}};
}

absl::StatusOr<ClientSecurity> ReadClientSecurity(const CommandLine& line) {
  ClientSecurity security;
  if (line.Has("tls-client-cert") != line.Has("tls-client-key")) {
    return Usage("--tls-client-cert and --tls-client-key go together");
  }
  if (line.Has("tls-client-cert") && !line.Has("tls-ca")) {
    return Usage("--tls-client-cert needs --tls-ca");
  }
  if (line.Has("api-key-file")) {
    HIPPODROME_ASSIGN_OR_RETURN(security.api_key, ReadApiKey(line.Text("api-key-file")));
  }
  if (line.Has("tls-ca")) {
    HIPPODROME_ASSIGN_OR_RETURN(security.authorities, ReadPem(line, "tls-ca"));
  }
  if (line.Has("tls-client-cert")) {
    HIPPODROME_ASSIGN_OR_RETURN(security.certificate, ReadPem(line, "tls-client-cert"));
    HIPPODROME_ASSIGN_OR_RETURN(security.private_key, ReadPem(line, "tls-client-key"));
  }
  return security;
}

}  // namespace hippodrome
