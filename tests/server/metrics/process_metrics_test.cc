#include "server/metrics/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <string>

namespace hippodrome::process_metrics_test {
namespace {

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : ProcessMetrics()) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, SaysWhatTheProcessTakes) {
  // The system counts in hundredths of a second.
  while (std::clock() < CLOCKS_PER_SEC / 20) {
  }
  auto values = Values();
  EXPECT_EQ(values.size(), 7U);
  EXPECT_GT(values["process_cpu_seconds_total"], 0);
  EXPECT_GT(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"]);
  EXPECT_GT(values["process_resident_memory_bytes"], 1 << 20);
  EXPECT_GE(values["process_threads"], 1);
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(values["process_start_time_seconds"], now + 1);
  EXPECT_GT(values["process_start_time_seconds"], now - 3600);
}

TEST(ProcessMetricsTest, CountsOpenFiles) {
  const double before = Values()["process_open_fds"];
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Values()["process_open_fds"], before + 1);
  close(fd);
  EXPECT_EQ(Values()["process_open_fds"], before);
  EXPECT_GT(Values()["process_max_fds"], before);
}

TEST(ProcessMetricsTest, TheStartStays) {
  EXPECT_EQ(Values()["process_start_time_seconds"], Values()["process_start_time_seconds"]);
}

}  // namespace
}  // namespace hippodrome::process_metrics_test
