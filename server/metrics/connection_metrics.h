// The series of the connections of gRPC.
#ifndef HIPPODROME_SERVER_METRICS_CONNECTION_METRICS_H_
#define HIPPODROME_SERVER_METRICS_CONNECTION_METRICS_H_

#include <cstdint>
#include <memory>

#include "server/metrics/metrics.h"

namespace hippodrome {

// Why a connection was closed on arrival: all are taken; its address has its share; the process has
// no file descriptor left; its address flooded a moment ago.
enum class ConnectionRefusal : uint8_t { kFull, kAddressFull, kNoDescriptor, kFlood };

// Thread-safe.
class ConnectionMetrics {
 public:
  explicit ConnectionMetrics(MetricRegistry& registry);
  ~ConnectionMetrics();

  void SetOpen(int64_t connections);
  void Refused(ConnectionRefusal reason);
  // One was ended: with frames that carry no calls, or much while memory grew fast, it flooded.
  void Cut();
  // Accepting paused, because the process or the system had no file descriptor left.
  void Paused();

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_CONNECTION_METRICS_H_
