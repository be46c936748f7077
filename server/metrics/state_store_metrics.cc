#include "server/metrics/state_store_metrics.h"

#include <array>
#include <cstddef>

#include "server/metrics/metric_series.h"

namespace hippodrome {

struct StateStoreMetrics::Series {
  explicit Series(MetricRegistry& r)
      : hits(Counter(r, "hippodrome_state_store_hits_total", "States that were asked for and found")
                 .Add({})),
        misses(Counter(r, "hippodrome_state_store_misses_total",
                       "States that were asked for and not there (any more)")
                   .Add({})),
        stored(Counter(r, "hippodrome_state_store_stored_bytes_total", "Bytes of stored states")
                   .Add({})),
        evicted(Counter(r, "hippodrome_state_store_evictions_total",
                        "States that went because there was no room")
                    .Add({})),
        damaged(Counter(r, "hippodrome_state_store_damaged_total",
                        "States that were found damaged, and not used")
                    .Add({})),
        states(Gauge(r, "hippodrome_state_store_states", "States that are held").Add({})),
        bytes(
            Gauge(r, "hippodrome_state_store_bytes", "Bytes of the states that are held").Add({})) {
    Counters& family = Counter(r, "hippodrome_state_store_failures_total",
                               "Calls that the store of states could not do");
    // In the order of StateOperation.
    failures = {&family.Add({{"operation", "put"}}), &family.Add({{"operation", "get"}}),
                &family.Add({{"operation", "remove"}}), &family.Add({{"operation", "list"}})};
  }

  prometheus::Counter &hits, &misses, &stored, &evicted, &damaged;
  prometheus::Gauge &states, &bytes;
  std::array<prometheus::Counter*, 4> failures;
};

StateStoreMetrics::StateStoreMetrics(MetricRegistry& registry)
    : series_(std::make_unique<Series>(registry)) {}

StateStoreMetrics::~StateStoreMetrics() = default;

void StateStoreMetrics::Hit() { series_->hits.Increment(); }
void StateStoreMetrics::Miss() { series_->misses.Increment(); }

void StateStoreMetrics::Stored(int64_t bytes) {
  series_->stored.Increment(static_cast<double>(bytes));
}

void StateStoreMetrics::Evicted(int64_t states) {
  series_->evicted.Increment(static_cast<double>(states));
}

void StateStoreMetrics::Damaged() { series_->damaged.Increment(); }

void StateStoreMetrics::Failed(StateOperation operation) {
  series_->failures[static_cast<size_t>(operation)]->Increment();
}

void StateStoreMetrics::SetUse(int64_t states, int64_t bytes) {
  series_->states.Set(static_cast<double>(states));
  series_->bytes.Set(static_cast<double>(bytes));
}

}  // namespace hippodrome
