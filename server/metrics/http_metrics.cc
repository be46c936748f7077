#include "server/metrics/http_metrics.h"

#include "server/metrics/metric_series.h"

namespace hippodrome {
namespace {

constexpr int kRefusalCodes[] = {400, 408, 413, 414, 415, 417, 431, 499, 503, 505};

}  // namespace

struct HttpMetrics::Series {
  Series(MetricRegistry& r, const std::string& l)
      : connections(Gauge(r, "hippodrome_http_connections", "Open connections of HTTP")
                        .Add({{"listener", l}})),
        refused(Counter(r, "hippodrome_http_connections_refused_total",
                        "Connections of HTTP that were closed on arrival")),
        refused_full(refused.Add({{"listener", l}, {"reason", "full"}})),
        refused_address(refused.Add({{"listener", l}, {"reason", "address"}})),
        evicted(Counter(r, "hippodrome_http_connections_evicted_total",
                        "Idle connections of HTTP that were closed for newcomers")
                    .Add({{"listener", l}})),
        timed_out(Counter(r, "hippodrome_http_connections_timed_out_total",
                          "Connections of HTTP whose client let a time limit pass")
                      .Add({{"listener", l}})),
        handshakes_failed(Counter(r, "hippodrome_http_tls_handshakes_failed_total",
                                  "Connections of HTTP that did not come to a TLS session")
                              .Add({{"listener", l}})),
        body_bytes(Gauge(r, "hippodrome_http_body_bytes", "Memory that bodies of requests hold")
                       .Add({{"listener", l}})) {}

  prometheus::Gauge& connections;
  Counters& refused;
  prometheus::Counter &refused_full, &refused_address, &evicted, &timed_out, &handshakes_failed;
  prometheus::Gauge& body_bytes;
};

HttpMetrics::HttpMetrics(Metrics& metrics, const std::string& listener)
    : series_(std::make_unique<Series>(metrics.registry(), listener)) {
  for (const int code : kRefusalCodes) {
    metrics.AnnounceRequest(Api::kHttp, kNoRoute, "", std::to_string(code));
  }
}

HttpMetrics::~HttpMetrics() = default;

void HttpMetrics::Connected() { series_->connections.Increment(); }
void HttpMetrics::Disconnected() { series_->connections.Decrement(); }
void HttpMetrics::RefusedFull() { series_->refused_full.Increment(); }
void HttpMetrics::RefusedAddress() { series_->refused_address.Increment(); }
void HttpMetrics::Evicted() { series_->evicted.Increment(); }
void HttpMetrics::TimedOut() { series_->timed_out.Increment(); }
void HttpMetrics::HandshakeFailed() { series_->handshakes_failed.Increment(); }

void HttpMetrics::BodyBytes(int64_t bytes) {
  if (bytes >= 0) {
    series_->body_bytes.Increment(static_cast<double>(bytes));
  } else {
    series_->body_bytes.Decrement(static_cast<double>(-bytes));
  }
}

}  // namespace hippodrome
