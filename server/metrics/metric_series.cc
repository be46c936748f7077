#include "server/metrics/metric_series.h"

namespace hippodrome {
namespace {

prometheus::Histogram& AddLatency(Histograms& family, const std::string& model, Api api) {
  return family.Add({{"model", model}, {"api", Name(api)}}, Seconds());
}

}  // namespace

prometheus::Histogram::BucketBoundaries PowersOfTwo(int highest) {
  prometheus::Histogram::BucketBoundaries bounds;
  for (int i = 0; i <= highest; ++i) bounds.push_back(1 << i);
  return bounds;
}

prometheus::Histogram::BucketBoundaries Seconds() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (int i = 0; i < 23; ++i) bounds.push_back(1e-4 * (1 << i));
  return bounds;
}

Counters& Counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Gauges& Gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Histograms& Histogram(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

Latency::Latency(Histograms& family, const std::string& model)
    : series_{&AddLatency(family, model, Api::kHttp), &AddLatency(family, model, Api::kGrpc)} {}

void Latency::Observe(Api api, std::chrono::duration<double> duration) {
  series_[static_cast<size_t>(api)]->Observe(duration.count());
}

Histograms& QueueDuration(prometheus::Registry& registry) {
  return Histogram(registry, "hippodrome_queue_duration_seconds", "From arrival to admission");
}

Histograms& RequestDuration(prometheus::Registry& registry) {
  return Histogram(registry, "hippodrome_request_duration_seconds",
                   "From arrival to the end of the answer");
}

Histograms& EngineStepSeconds(prometheus::Registry& registry) {
  return Histogram(registry, "hippodrome_engine_step_seconds", "Calls of the engine");
}

Histograms& BatchSequences(prometheus::Registry& registry) {
  return Histogram(registry, "hippodrome_batch_sequences",
                   "Sequences in a decoding step, or inputs in an encoder's batch");
}

Counters& CancelledTotal(prometheus::Registry& registry) {
  return Counter(registry, "hippodrome_cancelled_total", "Requests that their client gave up");
}

Counters& AdmissionRejectedTotal(prometheus::Registry& registry) {
  return Counter(registry, "hippodrome_admission_rejected_total",
                 "Requests refused on arrival, or in the queue");
}

void AnnounceRejections(Counters& rejected, const std::string& model) {
  for (const char* reason :
       {"queue_full", "client_share", "never_fits", "max_wait", "deadline", "stopping"}) {
    rejected.Add({{"model", model}, {"reason", reason}});
  }
}

Gauges& RequestsQueued(prometheus::Registry& registry) {
  return Gauge(registry, "hippodrome_requests_queued", "Requests that wait for the engine");
}

Gauges& RequestsRunning(prometheus::Registry& registry) {
  return Gauge(registry, "hippodrome_requests_running", "Admitted requests");
}

}  // namespace hippodrome
