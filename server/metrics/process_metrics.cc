#include "server/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace hippodrome {
namespace {

// Of /proc/self/stat, numbered as in proc(5) from the third on, the first behind the name.
struct Stat {
  double cpu_seconds = 0;
  double threads = 0;
  double start_seconds = 0;  // since the system started
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may have anything in it
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state;
  fields >> state;
  constexpr int kFirst = 4;
  constexpr int kLast = 24;
  double values[kLast + 1] = {};
  for (int i = kFirst; i <= kLast; ++i) fields >> values[i];
  if (!fields) return std::nullopt;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return Stat{.cpu_seconds = (values[14] + values[15]) / ticks,
              .threads = values[20],
              .start_seconds = values[22] / ticks,
              .virtual_bytes = values[23],
              .resident_bytes = values[24] * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

// When the system started, in seconds since 1970.
double BootSeconds() {
  timespec now{}, since_boot{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return static_cast<double>(now.tv_sec - since_boot.tv_sec) +
         static_cast<double>(now.tv_nsec - since_boot.tv_nsec) * 1e-9;
}

std::optional<double> CountOpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return std::nullopt;
  int64_t count = -3;  // ".", ".." and that of `folder`
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return static_cast<double>(count);
}

void AddValue(const char* name, const char* help, prometheus::MetricType type, double value,
              std::vector<prometheus::MetricFamily>& families) {
  prometheus::ClientMetric metric;
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  families.push_back({name, help, type, {metric}});
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  if (const std::optional<Stat> stat = ReadStat()) {
    // It began once: the clock may be set, and the answer must not move.
    static const double began = BootSeconds() + stat->start_seconds;
    AddValue("process_cpu_seconds_total", "Processor time, of user and system", MetricType::Counter,
             stat->cpu_seconds, families);
    AddValue("process_start_time_seconds", "When the process began, in seconds since 1970",
             MetricType::Gauge, began, families);
    AddValue("process_resident_memory_bytes", "Resident memory", MetricType::Gauge,
             stat->resident_bytes, families);
    AddValue("process_virtual_memory_bytes", "Virtual memory", MetricType::Gauge,
             stat->virtual_bytes, families);
    AddValue("process_threads", "Threads", MetricType::Gauge, stat->threads, families);
  }
  if (const std::optional<double> open = CountOpenFiles()) {
    AddValue("process_open_fds", "Open file descriptors", MetricType::Gauge, *open, families);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    AddValue("process_max_fds", "File descriptors that may be open", MetricType::Gauge,
             static_cast<double>(limit.rlim_cur), families);
  }
  return families;
}

}  // namespace hippodrome
