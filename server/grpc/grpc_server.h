// The gRPC interface: hippodrome.v1, health and reflection.
#ifndef HIPPODROME_SERVER_GRPC_GRPC_SERVER_H_
#define HIPPODROME_SERVER_GRPC_GRPC_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/access/access_control.h"
#include "server/handlers/handlers.h"
#include "server/metrics/metrics.h"
#include "server/options.h"
#include "server/tls/tls_files.h"

namespace hippodrome {

// Thread-safe.
class GrpcServer {
 public:
  // Listens and serves, within the limits of `options`: connections beyond them are closed on
  // arrival, and so are those that say nothing within the handshake's time-out; compressed messages
  // are refused with UNIMPLEMENTED. When the process has no file descriptor left, new connections
  // wait. All services but grpc.health.v1 take an API key as `access` says,
  // which must outlive the server, like `handlers` and `metrics`. `tls`: what new connections are
  // encrypted with; null: nothing. Errors: kInvalidArgument for an address
  // that cannot be read, kUnavailable with the system's reason when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const GrpcOptions& options, Handlers& handlers, Metrics& metrics, const AccessControl& access,
      std::shared_ptr<const TlsFiles> tls = nullptr);
  ~GrpcServer();

  // HOST:PORT as bound.
  const std::string& address() const;
  // What the health service says from now on, for the server and for each of its services, while
  // the handlers are ready; else it says that it does not serve.
  void SetServing(bool serving);
  // Takes no more connections. Those that there are, and their calls, go on. Idempotent.
  void RefuseConnections();
  // Takes no more calls, ends health watches and reflection, lets other calls in progress finish
  // for at most `grace`, cancels the rest. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_GRPC_SERVER_H_
