// The series of one encoder.
#ifndef HIPPODROME_SERVER_METRICS_ENCODER_METRICS_H_
#define HIPPODROME_SERVER_METRICS_ENCODER_METRICS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/metrics/metrics.h"

namespace hippodrome {

// One run of an encoder.
struct EncodedBatch {
  int64_t inputs = 0;
  int64_t tokens = 0;         // of the inputs
  int64_t padded_tokens = 0;  // as run, padding included
};

// In the families of ModelMetrics where these mean the same. Thread-safe.
class EncoderMetrics {
 public:
  using Duration = std::chrono::duration<double>;

  EncoderMetrics(MetricRegistry& registry, const std::string& model);
  ~EncoderMetrics();

  // An input of so many tokens was in the queue, where somebody waited for it, and then in a run.
  void Encoded(Api api, std::optional<Duration> queued, Duration run, int64_t tokens);
  // A call has all of its outputs; somebody waited for them, or nobody.
  void Finished(Api api, std::optional<Duration> since_submit);
  // Inputs of a cancelled call left the queue.
  void Cancelled(int64_t inputs);
  // reason: one of those of AnnounceRejections().
  void Rejected(const std::string& reason);
  void EngineStep(Duration duration, const EncodedBatch& batch);
  // Inputs.
  void SetLoad(const QueuedRequests& queued, int64_t running);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_ENCODER_METRICS_H_
