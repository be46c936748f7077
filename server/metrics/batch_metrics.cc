#include "server/metrics/batch_metrics.h"

#include <array>
#include <cstddef>
#include <vector>

#include "server/metrics/metric_series.h"

namespace hippodrome {

struct BatchMetrics::Series {
  Series(MetricRegistry& r, std::span<const char* const> statuses)
      : bytes(Gauge(r, "hippodrome_batch_directory_bytes",
                    "Bytes of the files and batches that are kept")
                  .Add({})) {
    Counters& family =
        Counter(r, "hippodrome_batch_lines_total", "Lines of batches, by what became of them");
    // In the order of BatchLineResult.
    lines = {&family.Add({{"result", "completed"}}), &family.Add({{"result", "failed"}}),
             &family.Add({{"result", "cancelled"}}), &family.Add({{"result", "expired"}})};
    Gauges& held = Gauge(r, "hippodrome_batches", "Batches that are known, by status");
    for (const char* status : statuses) batches.push_back(&held.Add({{"status", status}}));
  }

  std::array<prometheus::Counter*, 4> lines;
  std::vector<prometheus::Gauge*> batches;
  prometheus::Gauge& bytes;
};

BatchMetrics::BatchMetrics(MetricRegistry& registry, std::span<const char* const> statuses)
    : series_(std::make_unique<Series>(registry, statuses)) {}

BatchMetrics::~BatchMetrics() = default;

void BatchMetrics::Line(BatchLineResult result) {
  series_->lines[static_cast<size_t>(result)]->Increment();
}

void BatchMetrics::SetBatches(std::span<const int64_t> counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    series_->batches[i]->Set(static_cast<double>(counts[i]));
  }
}

void BatchMetrics::SetBytes(int64_t bytes) { series_->bytes.Set(static_cast<double>(bytes)); }

}  // namespace hippodrome
