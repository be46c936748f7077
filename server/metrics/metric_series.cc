#include "server/metrics/metric_series.h"

namespace hippodrome {
namespace {

prometheus::Histogram& AddLatency(MetricRegistry& registry, Histograms& family,
                                  const std::string& model, Api api) {
  return family.Add({{"model", model}, {"api", Name(api)}}, registry.latency_buckets());
}

}  // namespace

prometheus::Histogram::BucketBoundaries PowersOfTwo(int highest) {
  prometheus::Histogram::BucketBoundaries bounds;
  for (int i = 0; i <= highest; ++i) bounds.push_back(1 << i);
  return bounds;
}

Counters& Counter(MetricRegistry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Gauges& Gauge(MetricRegistry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Histograms& Histogram(MetricRegistry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

Latency::Latency(MetricRegistry& registry, Histograms& family, const std::string& model)
    : series_{&AddLatency(registry, family, model, Api::kHttp),
              &AddLatency(registry, family, model, Api::kGrpc)} {}

void Latency::Observe(Api api, std::optional<std::chrono::duration<double>> duration) {
  if (duration) series_[static_cast<size_t>(api)]->Observe(duration->count());
}

QueueGauges::QueueGauges(MetricRegistry& registry, const std::string& model)
    : interactive_(Gauge(registry, "hippodrome_requests_queued",
                         "Requests that wait for the engine, with somebody who waits for them")
                       .Add({{"model", model}})),
      background_(Gauge(registry, "hippodrome_background_requests_queued",
                        "Requests in the background that wait for the engine")
                      .Add({{"model", model}})) {}

void QueueGauges::Set(const QueuedRequests& queued) {
  interactive_.Set(static_cast<double>(queued.interactive));
  background_.Set(static_cast<double>(queued.background));
}

Histograms& PromptTokens(MetricRegistry& registry) {
  return Histogram(registry, "hippodrome_request_prompt_tokens",
                   "Tokens of a prompt, or of an input of an encoder");
}

Gauges& LastStep(MetricRegistry& registry) {
  return Gauge(registry, "hippodrome_engine_last_step_timestamp_seconds",
               "When the engine last finished something, in seconds since 1970");
}

Histograms& QueueDuration(MetricRegistry& registry) {
  return Histogram(registry, "hippodrome_queue_duration_seconds", "From arrival to admission");
}

Histograms& RequestDuration(MetricRegistry& registry) {
  return Histogram(registry, "hippodrome_request_duration_seconds",
                   "From arrival to the end of the answer");
}

Histograms& EngineStepSeconds(MetricRegistry& registry) {
  return Histogram(registry, "hippodrome_engine_step_seconds", "Calls of the engine");
}

Histograms& BatchSequences(MetricRegistry& registry) {
  return Histogram(registry, "hippodrome_batch_sequences",
                   "Sequences in a decoding step, or inputs in an encoder's batch");
}

Counters& CancelledTotal(MetricRegistry& registry) {
  return Counter(registry, "hippodrome_cancelled_total", "Requests that their client gave up");
}

Counters& AdmissionRejectedTotal(MetricRegistry& registry) {
  return Counter(registry, "hippodrome_admission_rejected_total",
                 "Requests refused on arrival, or in the queue");
}

void AnnounceRejections(Counters& rejected, const std::string& model) {
  for (const char* reason : {"queue_full", "client_share", "background_share", "never_fits",
                             "max_wait", "deadline", "stopping"}) {
    rejected.Add({{"model", model}, {"reason", reason}});
  }
}

Gauges& RequestsRunning(MetricRegistry& registry) {
  return Gauge(registry, "hippodrome_requests_running", "Admitted requests");
}

}  // namespace hippodrome
