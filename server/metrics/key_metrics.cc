#include "server/metrics/key_metrics.h"

#include <array>
#include <cstddef>

#include "server/metrics/metric_series.h"

namespace hippodrome {
namespace {

// By KeyRefusal.
constexpr std::array kRefusals = {"expired", "admin", "model", "rate", "calls", "tokens", "bytes"};

}  // namespace

struct KeyMetrics::Series {
  Series(MetricRegistry& registry, const prometheus::Labels& key)
      : admitted(Counter(registry, "hippodrome_key_requests_total",
                         "Calls that were admitted, by API key")
                     .Add(key)),
        calls(
            Gauge(registry, "hippodrome_key_calls_running", "Calls of an API key that wait or run")
                .Add(key)),
        tokens(Gauge(registry, "hippodrome_key_reserved_tokens",
                     "Tokens that the calls of an API key reserve")
                   .Add(key)),
        bytes(Gauge(registry, "hippodrome_key_reserved_bytes",
                    "Bytes that the calls of an API key reserve")
                  .Add(key)) {
    Counters& family = Counter(registry, "hippodrome_key_refused_total",
                               "Calls with a known API key that were refused, by reason");
    for (size_t i = 0; i < kRefusals.size(); ++i) {
      prometheus::Labels labels = key;
      labels["reason"] = kRefusals[i];
      refused[i] = &family.Add(labels);
    }
  }

  prometheus::Counter& admitted;
  prometheus::Gauge &calls, &tokens, &bytes;
  std::array<prometheus::Counter*, kRefusals.size()> refused{};
};

KeyMetrics::KeyMetrics(Metrics& metrics, const std::string& key)
    : series_(std::make_unique<Series>(metrics.registry(), prometheus::Labels{{"key", key}})) {}

KeyMetrics::~KeyMetrics() = default;

void KeyMetrics::Admitted() { series_->admitted.Increment(); }

void KeyMetrics::Refused(KeyRefusal why) {
  series_->refused[static_cast<size_t>(why)]->Increment();
}

void KeyMetrics::SetHeld(int64_t calls, int64_t tokens, int64_t bytes) {
  series_->calls.Set(static_cast<double>(calls));
  series_->tokens.Set(static_cast<double>(tokens));
  series_->bytes.Set(static_cast<double>(bytes));
}

}  // namespace hippodrome
