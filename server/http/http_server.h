// An HTTP/1.1 server: connections, limits, time-outs, streams.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_SERVER_H_
#define HIPPODROME_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_types.h"
#include "server/options.h"

namespace hippodrome {

// A few threads serve all connections. A client that disconnects while its answer is made has its
// HttpWork destroyed at once; one that does not read blocks its own stream alone, and is cut off
// after the write time-out. Thread-safe.
class HttpServer {
 public:
  // Listens and serves. Errors: kInvalidArgument for an address that cannot be read, kUnavailable
  // with the system's reason when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           HttpHandler handler);
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
