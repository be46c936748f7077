// What a listener of HTTP counts, beside the requests that reach a route.
#ifndef HIPPODROME_SERVER_METRICS_HTTP_METRICS_H_
#define HIPPODROME_SERVER_METRICS_HTTP_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/metrics/metrics.h"

namespace hippodrome {

// Thread-safe.
class HttpMetrics {
 public:
  // `metrics` must outlive this. `listener` is a label: "main", "admin".
  HttpMetrics(Metrics& metrics, const std::string& listener);
  ~HttpMetrics();

  void Connected();
  void Disconnected();
  // A newcomer was turned away: all places were taken by requests in progress, or all places of its
  // address.
  void RefusedFull();
  void RefusedAddress();
  // A connection without a request in progress was given up for a newcomer.
  void Evicted();
  // A client let a time limit pass.
  void TimedOut();
  // A client and the server did not come to a TLS session.
  void HandshakeFailed();
  // `bytes` more, or less, are held for bodies.
  void BodyBytes(int64_t bytes);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_HTTP_METRICS_H_
