// The series of /v1/batches.
#ifndef HIPPODROME_SERVER_METRICS_BATCH_METRICS_H_
#define HIPPODROME_SERVER_METRICS_BATCH_METRICS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "server/metrics/metrics.h"

namespace hippodrome {

// What became of a line: an answer, an error, or nothing, since its batch ended before.
enum class BatchLineResult : uint8_t { kCompleted, kFailed, kCancelled, kExpired };

// Thread-safe.
class BatchMetrics {
 public:
  // `statuses`: the names of those that a batch can have.
  BatchMetrics(MetricRegistry& registry, std::span<const char* const> statuses);
  ~BatchMetrics();

  void Line(BatchLineResult result);
  // How many batches have each status, in the order of the constructor's.
  void SetBatches(std::span<const int64_t> counts);
  // Of the directory.
  void SetBytes(int64_t bytes);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_BATCH_METRICS_H_
