// Families and series of metrics. Includes prometheus-cpp: for *_metrics.cc alone.
#ifndef HIPPODROME_SERVER_METRICS_METRIC_SERIES_H_
#define HIPPODROME_SERVER_METRICS_METRIC_SERIES_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "server/metrics/metrics.h"

namespace hippodrome {

using Counters = prometheus::Family<prometheus::Counter>;
using Gauges = prometheus::Family<prometheus::Gauge>;
using Histograms = prometheus::Family<prometheus::Histogram>;

// With what all histograms of latencies have in common.
class MetricRegistry : public prometheus::Registry {
 public:
  explicit MetricRegistry(prometheus::Histogram::BucketBoundaries latency_buckets)
      : latency_buckets_(std::move(latency_buckets)) {}

  const prometheus::Histogram::BucketBoundaries& latency_buckets() const {
    return latency_buckets_;
  }

 private:
  const prometheus::Histogram::BucketBoundaries latency_buckets_;
};

// 1, 2, 4, .., 2^highest.
prometheus::Histogram::BucketBoundaries PowersOfTwo(int highest);
// The family `name`, made where it does not exist. One that does keeps its help.
Counters& Counter(MetricRegistry& registry, const char* name, const char* help);
Gauges& Gauge(MetricRegistry& registry, const char* name, const char* help);
Histograms& Histogram(MetricRegistry& registry, const char* name, const char* help);

// One latency of one model, by api.
class Latency {
 public:
  Latency(MetricRegistry& registry, Histograms& family, const std::string& model);
  void Observe(Api api, std::optional<std::chrono::duration<double>> duration);

 private:
  std::array<prometheus::Histogram*, 2> series_;
};

// The part that one model has in a gauge, which is the sum over all models of its name: while one
// takes the place of another there are two. Thread-safe.
class GaugePart {
 public:
  explicit GaugePart(prometheus::Gauge& gauge) : gauge_(gauge) {}
  ~GaugePart() { Set(0); }
  GaugePart(const GaugePart&) = delete;
  GaugePart& operator=(const GaugePart&) = delete;

  void Set(double value) { gauge_.Increment(value - value_.exchange(value)); }

 private:
  prometheus::Gauge& gauge_;
  std::atomic<double> value_ = 0;
};

// Who waits for one model. Those in the background have a gauge of their own: more servers are
// wanted for the others alone.
class QueueGauges {
 public:
  QueueGauges(MetricRegistry& registry, const std::string& model);
  void Set(const QueuedRequests& queued);

 private:
  GaugePart interactive_, background_;
};

// Families that decoders and encoders have in common.
Histograms& PromptTokens(MetricRegistry& registry);
Gauges& LastStep(MetricRegistry& registry);
Histograms& QueueDuration(MetricRegistry& registry);
Histograms& RequestDuration(MetricRegistry& registry);
Histograms& EngineStepSeconds(MetricRegistry& registry);
Histograms& BatchSequences(MetricRegistry& registry);
Counters& CancelledTotal(MetricRegistry& registry);
Counters& AdmissionRejectedTotal(MetricRegistry& registry);
// Shows all reasons as 0 until there are some.
void AnnounceRejections(Counters& rejected, const std::string& model);
Gauges& RequestsRunning(MetricRegistry& registry);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_METRIC_SERIES_H_
