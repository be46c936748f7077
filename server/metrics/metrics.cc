#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "server/log/log.h"
#include "server/metrics/metric_series.h"
#include "server/metrics/process_metrics.h"
#include "server/version.h"

namespace hippodrome {

namespace {

// In the order of FailureReason, behind kNone.
constexpr std::array kFailures = {"overloaded", "validation", "deadline", "cancelled",
                                  "internal",   "auth",       "limit"};

// 64 bytes to 64 MiB.
prometheus::Histogram::BucketBoundaries Sizes() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bytes = 64; bytes <= 64 << 20; bytes *= 4) bounds.push_back(bytes);
  return bounds;
}

}  // namespace

struct Metrics::Families {
  // Of one route over HTTP.
  struct Route {
    prometheus::Histogram& duration;
    prometheus::Histogram& received;
    prometheus::Histogram& sent;
  };

  explicit Families(MetricRegistry& r);
  prometheus::Counter& Requests(Api api, std::string_view route, std::string_view model,
                                std::string_view code);
  Route& HttpRoute(std::string_view route);

  MetricRegistry& registry;
  Counters& requests;
  Histograms &http_duration, &http_received, &http_sent;
  prometheus::Counter& cut;
  prometheus::Gauge& streams;
  prometheus::Counter& dropped_lines;
  Gauges& model;
  std::array<prometheus::Counter*, kFailures.size()> failures = {};

  std::mutex mutex;                                  // guards all below
  std::map<std::string, prometheus::Gauge*> models;  // the series of `model`, by name
  // What was asked for before is found without making labels of it.
  std::map<std::string, prometheus::Counter*, std::less<>> known_requests;
  std::map<std::string, Route, std::less<>> known_routes;
};

Metrics::Families::Families(MetricRegistry& r)
    : registry(r),
      requests(Counter(r, "hippodrome_requests_total", "Answered requests by status code")),
      http_duration(Histogram(r, "hippodrome_http_request_duration_seconds",
                              "From the first byte of a request to the last of its answer")),
      http_received(Histogram(r, "hippodrome_http_request_size_bytes", "Bodies of requests")),
      http_sent(Histogram(r, "hippodrome_http_response_size_bytes", "Bodies of answers")),
      cut(Counter(r, "hippodrome_requests_cut_total",
                  "Requests that were in progress when the grace period of a drain ended")
              .Add({})),
      streams(Gauge(r, "hippodrome_stream_clients", "Answers that are being streamed").Add({})),
      dropped_lines(Counter(r, "hippodrome_log_dropped_total",
                            "Lines of logs that were dropped, because their reader was slow")
                        .Add({})),
      model(Gauge(r, "hippodrome_model_info", "Always 1; the labels say what was loaded")) {
  const BuildInfo& build = Build();
  Gauge(r, "hippodrome_build_info", "Always 1; the labels say what runs")
      .Add({{"version", build.version},
            {"git", build.git},
            {"backend", build.backends},
            {"cpu_isa", build.cpu_isa}})
      .Set(1);
  Counters& family = Counter(r, "hippodrome_request_failures_total", "Failed requests by reason");
  for (size_t i = 0; i < failures.size(); ++i) {
    failures[i] = &family.Add({{"reason", kFailures[i]}});
  }
}

prometheus::Counter& Metrics::Families::Requests(Api api, std::string_view route,
                                                 std::string_view model, std::string_view code) {
  thread_local std::string key;
  key.clear();
  key.append(Name(api)).append(" ").append(route).append(" ").append(code).append(" ").append(
      model);
  std::lock_guard lock(mutex);
  const auto known = known_requests.find(key);
  if (known != known_requests.end()) return *known->second;
  prometheus::Counter& made = requests.Add({{"api", Name(api)},
                                            {"route", std::string(route)},
                                            {"model", std::string(model)},
                                            {"code", std::string(code)}});
  known_requests.emplace(key, &made);
  return made;
}

Metrics::Families::Route& Metrics::Families::HttpRoute(std::string_view route) {
  std::lock_guard lock(mutex);
  const auto known = known_routes.find(route);
  if (known != known_routes.end()) return known->second;
  const prometheus::Labels labels = {{"route", std::string(route)}};
  return known_routes
      .emplace(std::string(route),
               Route{http_duration.Add(labels, registry.latency_buckets()),
                     http_received.Add(labels, Sizes()), http_sent.Add(labels, Sizes())})
      .first->second;
}

const char* Name(Api api) { return api == Api::kHttp ? "http" : "grpc"; }

std::vector<double> DefaultLatencyBuckets() {
  std::vector<double> bounds;
  for (int i = 0; i < 23; ++i) bounds.push_back(1e-4 * (1 << i));
  return bounds;
}

Metrics::Metrics(std::vector<double> latency_buckets)
    : registry_(std::make_unique<MetricRegistry>(std::move(latency_buckets))),
      families_(std::make_unique<Families>(*registry_)) {}

Metrics::~Metrics() = default;

void Metrics::SetModelInfo(const v1::Model& model) {
  std::lock_guard lock(families_->mutex);
  prometheus::Gauge& info = families_->model.Add({{"model", model.name()},
                                                  {"arch", model.architecture()},
                                                  {"dtype", model.weights()},
                                                  {"params", std::to_string(model.parameters())}});
  info.Set(1);
  prometheus::Gauge*& known = families_->models[model.name()];
  if (known != nullptr && known != &info) families_->model.Remove(known);
  known = &info;
}

void Metrics::RemoveModelInfo(const std::string& name) {
  std::lock_guard lock(families_->mutex);
  const auto known = families_->models.find(name);
  if (known == families_->models.end()) return;
  families_->model.Remove(known->second);
  families_->models.erase(known);
}

void Metrics::CountRequest(Api api, std::string_view route, std::string_view model,
                           std::string_view code) {
  families_->Requests(api, route, model, code).Increment();
}

void Metrics::AnnounceRequest(Api api, std::string_view route, std::string_view model,
                              std::string_view code) {
  families_->Requests(api, route, model, code);
}

void Metrics::MeasureHttp(std::string_view route, std::chrono::duration<double> duration,
                          int64_t received, int64_t sent) {
  const Families::Route& series = families_->HttpRoute(route);
  series.duration.Observe(duration.count());
  series.received.Observe(static_cast<double>(received));
  series.sent.Observe(static_cast<double>(sent));
}

void Metrics::CountStreams(int64_t more) {
  families_->streams.Increment(static_cast<double>(more));
}

void Metrics::CountFailure(FailureReason reason) {
  if (reason == FailureReason::kNone) return;
  families_->failures[static_cast<size_t>(reason) - 1]->Increment();
}

void Metrics::CountCut(int64_t requests) {
  families_->cut.Increment(static_cast<double>(requests));
}

std::string Metrics::Text() const {
  prometheus::Counter& dropped = families_->dropped_lines;
  dropped.Increment(static_cast<double>(DroppedLogLines()) - dropped.Value());
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : ProcessMetrics()) families.push_back(std::move(family));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace hippodrome
