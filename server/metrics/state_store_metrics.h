// The series of the store of states.
#ifndef HIPPODROME_SERVER_METRICS_STATE_STORE_METRICS_H_
#define HIPPODROME_SERVER_METRICS_STATE_STORE_METRICS_H_

#include <cstdint>
#include <memory>

#include "server/metrics/metrics.h"

namespace hippodrome {

enum class StateOperation : uint8_t { kPut, kGet, kRemove, kList };

// Thread-safe.
class StateStoreMetrics {
 public:
  explicit StateStoreMetrics(MetricRegistry& registry);
  ~StateStoreMetrics();

  void Hit();
  // Unknown, expired, evicted or of another owner.
  void Miss();
  void Stored(int64_t bytes);
  void Evicted(int64_t states);
  // Found, but not as it was stored.
  void Damaged();
  // The store could not do it: it is full, slow or gone.
  void Failed(StateOperation operation);
  // What it holds; a store that other servers share does not say.
  void SetUse(int64_t states, int64_t bytes);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_STATE_STORE_METRICS_H_
