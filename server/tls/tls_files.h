// The server's certificates: read and checked in one place, for all listeners, and read again while
// it serves.
#ifndef HIPPODROME_SERVER_TLS_TLS_FILES_H_
#define HIPPODROME_SERVER_TLS_TLS_FILES_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/options.h"
#include "server/tls/tls_context.h"

namespace hippodrome {

// What new connections use. Does not change.
struct TlsIdentity {
  std::string certificates;  // PEM: the server's own, then those between it and its authority
  std::string key;           // PEM
  std::string client_ca;     // PEM: whom clients must have a certificate from; empty: none asked
  TlsContext http;           // all of it, for HTTP
  std::chrono::system_clock::time_point expires;  // the first of its certificates
};

// Thread-safe.
class TlsFiles {
 public:
  // Reads the files. Certificates that have expired, or are not valid yet, are taken: Warning()
  // says so. Errors: as NewServerContext(). REQUIRES: options.on().
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Open(const TlsOptions& options);

  // Reads them anew, for Reloadable::prepare. Returns what puts them into force, while this lives;
  // null where nothing is new. Errors: as Open(), and kFailedPrecondition for dates.
  absl::StatusOr<std::function<void()>> Prepare();

  std::shared_ptr<const TlsIdentity> current() const;
  // That the certificates in force are not valid at `now`, and which file that is about; "" where
  // they are.
  std::string Warning(std::chrono::system_clock::time_point now) const;

 private:
  explicit TlsFiles(const TlsOptions& options) : options_(options) {}
  absl::StatusOr<std::shared_ptr<const TlsIdentity>> Read() const;

  const TlsOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const TlsIdentity> current_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_TLS_TLS_FILES_H_
