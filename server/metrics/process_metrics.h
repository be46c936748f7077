// What this process takes of the machine.
#ifndef HIPPODROME_SERVER_METRICS_PROCESS_METRICS_H_
#define HIPPODROME_SERVER_METRICS_PROCESS_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

namespace hippodrome {

// Under the names that Prometheus's own libraries use: process_cpu_seconds_total,
// process_start_time_seconds, process_{resident,virtual}_memory_bytes, process_{open,max}_fds and
// process_threads. What the system does not tell is missing.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_PROCESS_METRICS_H_
