// What OpenSSL needs to begin connections: certificates and keys, read and checked once.
#ifndef HIPPODROME_SERVER_TLS_TLS_CONTEXT_H_
#define HIPPODROME_SERVER_TLS_TLS_CONTEXT_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace hippodrome {

// TLS 1.2 and 1.3 with forward secrecy, without compression, renegotiation and resumption. Sessions
// that began with it keep it. Thread-safe.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

struct PemFile {
  std::string path;  // for errors
  std::string text;
};

// Errors: kInvalidArgument naming `what` the file is, the file, and what is wrong with it.
absl::StatusOr<PemFile> ReadPemFile(const std::string& what, const std::string& path);

// For an HTTP server: of the protocols that a client offers (ALPN) it takes http/1.1 and http/1.0.
// `certificates`: the server's own, then those between it and its authority. `client_ca`: where it
// is not empty, clients must have a certificate of one of these authorities. Errors:
// kInvalidArgument naming the file and what is wrong: no certificate or key in it, one that is
// broken or too weak, a key that is encrypted, or does not belong to the certificate. Dates are not
// looked at.
absl::StatusOr<TlsContext> NewServerContext(const PemFile& certificates, const PemFile& key,
                                            const PemFile& client_ca);

// Paths of PEM files.
struct TlsClientOptions {
  std::string ca;           // whom to trust for servers; empty: the system's authorities
  std::string certificate;  // the client's own, for servers that ask for one; empty: none
  std::string key;          // of the certificate
};

// For a client of HTTP/1.1. Errors: as NewServerContext().
absl::StatusOr<TlsContext> NewClientContext(const TlsClientOptions& options);

// When all of the certificates that a context shows are valid.
struct TlsDates {
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};
TlsDates DatesOf(const TlsContext& context);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_TLS_TLS_CONTEXT_H_
