#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <sstream>

#include "server/version.h"

namespace hippodrome {

using prometheus::BuildCounter;
using prometheus::BuildGauge;

namespace {

// In the order of FailureReason, behind kNone.
constexpr std::array kFailures = {"overloaded", "validation", "deadline",
                                  "cancelled",  "internal",   "auth"};

}  // namespace

struct Metrics::Families {
  explicit Families(prometheus::Registry& registry)
      : requests(BuildCounter()
                     .Name("hippodrome_requests_total")
                     .Help("Answered requests by status code")
                     .Register(registry)),
        cut(BuildCounter()
                .Name("hippodrome_requests_cut_total")
                .Help("Requests that were in progress when the grace period of a drain ended")
                .Register(registry)
                .Add({})),
        build(BuildGauge()
                  .Name("hippodrome_build_info")
                  .Help("Always 1; the labels say what runs")
                  .Register(registry)),
        model(BuildGauge()
                  .Name("hippodrome_model_info")
                  .Help("Always 1; the labels say what was loaded")
                  .Register(registry)) {
    auto& family = BuildCounter()
                       .Name("hippodrome_request_failures_total")
                       .Help("Failed requests by reason")
                       .Register(registry);
    for (size_t i = 0; i < failures.size(); ++i) {
      failures[i] = &family.Add({{"reason", kFailures[i]}});
    }
  }

  prometheus::Family<prometheus::Counter>& requests;
  prometheus::Counter& cut;
  prometheus::Family<prometheus::Gauge>& build;
  prometheus::Family<prometheus::Gauge>& model;
  std::array<prometheus::Counter*, kFailures.size()> failures = {};
  std::mutex mutex;                                  // guards models
  std::map<std::string, prometheus::Gauge*> models;  // the series of `model`, by name
};

const char* Name(Api api) { return api == Api::kHttp ? "http" : "grpc"; }

Metrics::Metrics()
    : registry_(std::make_unique<prometheus::Registry>()),
      families_(std::make_unique<Families>(*registry_)) {
  families_->build.Add({{"version", Version()}}).Set(1);
}

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

void Metrics::CountRequest(Api api, const std::string& route, const std::string& model,
                           const std::string& code) {
  families_->requests.Add({{"api", Name(api)}, {"route", route}, {"model", model}, {"code", code}})
      .Increment();
}

void Metrics::AnnounceRequest(Api api, const std::string& route, const std::string& model,
                              const std::string& code) {
  families_->requests.Add({{"api", Name(api)}, {"route", route}, {"model", model}, {"code", code}});
}

void Metrics::CountFailure(FailureReason reason) {
  if (reason == FailureReason::kNone) return;
  families_->failures[static_cast<size_t>(reason) - 1]->Increment();
}

void Metrics::CountCut(int64_t requests) {
  families_->cut.Increment(static_cast<double>(requests));
}

std::string Metrics::Text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_->Collect());
  return out.str();
}

}  // namespace hippodrome
