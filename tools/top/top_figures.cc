#include "tools/top/top_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace hippodrome {
namespace {

using nlohmann::json;

// Two readings.
class Readings {
 public:
  Readings(const MetricsText* before, const MetricsText& now, double seconds, bool totals)
      : before_(before), now_(now), seconds_(seconds), totals_(totals) {}

  const MetricsText& now() const { return now_; }

  std::optional<double> Gauge(const std::string& name, const LabelMatch& match = {}) const {
    return now_.Sum(name, match);
  }

  // A counter, a second or in all.
  std::optional<double> Counted(const std::string& name, const LabelMatch& match = {}) const {
    const std::optional<double> count = now_.Sum(name, match);
    if (!count || totals_) return count;
    if (before_ == nullptr || seconds_ <= 0) return std::nullopt;
    const double earlier = before_->Sum(name, match).value_or(0);
    return (*count < earlier ? *count : *count - earlier) / seconds_;
  }

  LatencyFigures Latency(const std::string& histogram, const LabelMatch& match = {}) const {
    if (before_ == nullptr && !totals_) return {};
    const auto earlier = totals_ ? std::map<double, double>() : before_->Buckets(histogram, match);
    const auto buckets = now_.Buckets(histogram, match);
    return {BucketQuantile(earlier, buckets, 0.5), BucketQuantile(earlier, buckets, 0.99)};
  }

 private:
  const MetricsText* before_;
  const MetricsText& now_;
  const double seconds_;
  const bool totals_;
};

// What was answered with success: 2xx over HTTP, "ok" over gRPC.
std::optional<double> Successes(const Readings& readings) {
  std::optional<double> sum;
  for (const std::string& code : readings.now().Values("hippodrome_requests_total", "code")) {
    if (!code.starts_with('2') && code != "ok") continue;
    const auto count = readings.Counted("hippodrome_requests_total", {{"code", code}});
    if (count) sum = sum.value_or(0) + *count;
  }
  return sum;
}

ModelFigures FiguresOfModel(const Readings& readings, const std::string& name) {
  const LabelMatch model = {{"model", name}};
  const auto with = [&](const char* label, const char* value) {
    return LabelMatch{{"model", name}, {label, value}};
  };
  ModelFigures figures{.name = name};
  const auto generated = readings.Counted("hippodrome_generated_tokens_total", model);
  figures.new_tokens =
      generated ? generated : readings.Counted("hippodrome_encoded_tokens_total", model);
  figures.prompt_tokens = readings.Counted("hippodrome_prompt_tokens_total", model);
  figures.queued = readings.Gauge("hippodrome_requests_queued", model);
  figures.running = readings.Gauge("hippodrome_requests_running", model);
  figures.slots = readings.Gauge("hippodrome_state_slots", with("state", "active"));
  figures.all_slots = readings.Gauge("hippodrome_state_slots", model);
  figures.bytes = readings.Gauge("hippodrome_state_bytes", model);
  figures.all_bytes = readings.Gauge("hippodrome_state_budget_bytes", model);
  figures.first_token = readings.Latency("hippodrome_time_to_first_token_seconds", model);
  figures.between_tokens = readings.Latency("hippodrome_inter_token_latency_seconds", model);
  figures.request = readings.Latency("hippodrome_request_duration_seconds", model);
  return figures;
}

json Value(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json Value(const LatencyFigures& latency) {
  return {{"p50", Value(latency.p50)}, {"p99", Value(latency.p99)}};
}

}  // namespace

TopFigures FiguresBetween(const MetricsText* before, const MetricsText& now,
                          std::chrono::duration<double> between, bool totals) {
  const Readings readings(before, now, between.count(), totals);
  TopFigures figures;
  const auto versions = now.Values("hippodrome_build_info", "version");
  if (!versions.empty()) figures.version = versions.front();
  figures.seconds = before == nullptr ? 0 : between.count();
  figures.new_tokens = readings.Counted("hippodrome_generated_tokens_total");
  figures.prompt_tokens = readings.Counted("hippodrome_prompt_tokens_total");
  figures.encoded_tokens = readings.Counted("hippodrome_encoded_tokens_total");
  figures.requests = Successes(readings);
  for (const auto& reason : now.Values("hippodrome_request_failures_total", "reason")) {
    const auto count = readings.Counted("hippodrome_request_failures_total", {{"reason", reason}});
    if (count.value_or(0) > 0) figures.failures[reason] = *count;
  }
  figures.queued = readings.Gauge("hippodrome_requests_queued");
  figures.running = readings.Gauge("hippodrome_requests_running");
  figures.http_connections = readings.Gauge("hippodrome_http_connections");
  figures.grpc_connections = readings.Gauge("hippodrome_grpc_connections");
  figures.resident_bytes = readings.Gauge("process_resident_memory_bytes");
  figures.first_token = readings.Latency("hippodrome_time_to_first_token_seconds");
  figures.between_tokens = readings.Latency("hippodrome_inter_token_latency_seconds");
  figures.request = readings.Latency("hippodrome_request_duration_seconds");
  for (const std::string& model : now.Values("hippodrome_requests_queued", "model")) {
    figures.models.push_back(FiguresOfModel(readings, model));
  }
  return figures;
}

json ToJson(const TopFigures& figures) {
  json models = json::array();
  for (const ModelFigures& model : figures.models) {
    models.push_back({{"model", model.name},
                      {"new_tokens", Value(model.new_tokens)},
                      {"prompt_tokens", Value(model.prompt_tokens)},
                      {"queued", Value(model.queued)},
                      {"running", Value(model.running)},
                      {"slots", Value(model.slots)},
                      {"all_slots", Value(model.all_slots)},
                      {"state_bytes", Value(model.bytes)},
                      {"state_budget_bytes", Value(model.all_bytes)},
                      {"time_to_first_token", Value(model.first_token)},
                      {"inter_token_latency", Value(model.between_tokens)},
                      {"request_duration", Value(model.request)}});
  }
  return {{"version", figures.version},
          {"seconds", figures.seconds},
          {"new_tokens", Value(figures.new_tokens)},
          {"prompt_tokens", Value(figures.prompt_tokens)},
          {"encoded_tokens", Value(figures.encoded_tokens)},
          {"requests", Value(figures.requests)},
          {"failures", figures.failures},
          {"queued", Value(figures.queued)},
          {"running", Value(figures.running)},
          {"http_connections", Value(figures.http_connections)},
          {"grpc_connections", Value(figures.grpc_connections)},
          {"resident_bytes", Value(figures.resident_bytes)},
          {"time_to_first_token", Value(figures.first_token)},
          {"inter_token_latency", Value(figures.between_tokens)},
          {"request_duration", Value(figures.request)},
          {"models", models}};
}

}  // namespace hippodrome
