#include "server/metrics/connection_metrics.h"

#include <array>
#include <cstddef>

#include "server/metrics/metric_series.h"

namespace hippodrome {

struct ConnectionMetrics::Series {
  explicit Series(MetricRegistry& r)
      : open(Gauge(r, "hippodrome_grpc_connections", "Open gRPC connections").Add({})),
        cut(Counter(r, "hippodrome_grpc_connections_cut_total",
                    "gRPC connections that were ended because they flooded")
                .Add({})),
        pauses(Counter(r, "hippodrome_grpc_accept_pauses_total",
                       "Times that no file descriptor was left for a gRPC connection")
                   .Add({})) {
    Counters& family = Counter(r, "hippodrome_grpc_connections_refused_total",
                               "gRPC connections that were closed on arrival");
    // In the order of ConnectionRefusal.
    refused = {&family.Add({{"reason", "full"}}), &family.Add({{"reason", "address_full"}}),
               &family.Add({{"reason", "no_descriptor"}}), &family.Add({{"reason", "flood"}})};
  }

  prometheus::Gauge& open;
  prometheus::Counter &cut, &pauses;
  std::array<prometheus::Counter*, 4> refused;
};

ConnectionMetrics::ConnectionMetrics(MetricRegistry& registry)
    : series_(std::make_unique<Series>(registry)) {}

ConnectionMetrics::~ConnectionMetrics() = default;

void ConnectionMetrics::SetOpen(int64_t connections) {
  series_->open.Set(static_cast<double>(connections));
}

void ConnectionMetrics::Refused(ConnectionRefusal reason) {
  series_->refused[static_cast<size_t>(reason)]->Increment();
}

void ConnectionMetrics::Cut() { series_->cut.Increment(); }

void ConnectionMetrics::Paused() { series_->pauses.Increment(); }

}  // namespace hippodrome
