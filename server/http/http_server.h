// An HTTP/1.1 server: connections, limits, time-outs, streams.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_SERVER_H_
#define HIPPODROME_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_types.h"
#include "server/metrics/metrics.h"
#include "server/options.h"
#include "server/tls/tls_files.h"

namespace hippodrome {

// A few threads serve all connections. A client that does not read blocks its own stream alone, and
// is cut off after the write time-out. One that disconnects while its answer is made has its
// HttpWork destroyed at once, whatever it has sent before. One that has only ended its own side
// (shutdown(SHUT_WR)) still gets its answer: to tell the two apart, it is sent "100 Continue" or,
// in a stream of events, a comment, which a connection that was closed answers with a reset.
// HTTP/1.0 has no such thing: there the end of the client's side is its end. Thread-safe.
class HttpServer {
 public:
  // Listens and serves. `metrics`: where connections, and requests that reach no handler, are
  // counted; it must outlive the server; null: nowhere. `tls`: what new connections are encrypted
  // with; null: nothing. `gate` sees requests before their bodies are read; null: nobody does.
  // Errors: kInvalidArgument for an address that cannot be read, kUnavailable with the system's
  // reason when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HttpOptions& options, HttpHandler handler, Metrics* metrics = nullptr,
      std::shared_ptr<const TlsFiles> tls = nullptr, HttpGate gate = nullptr);
  ~HttpServer();

  // HOST:PORT as bound.
  const std::string& address() const;
  // Accepts no more, lets requests in progress finish for at most `grace`, then closes all
  // connections and ends the threads. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_SERVER_H_
