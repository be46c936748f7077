#include "server/grpc/memory_pressure.h"

// Has fields that netinet/tcp.h lacks, and no source can include both.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace hippodrome {

int64_t PrivateBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0, shared = 0;  // pages
  file >> size >> resident >> shared;
  return file ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

int64_t BytesReceived(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < kNeeded) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

MemoryPressure::Level MemoryPressure::Look(int64_t bytes, Clock::time_point now) {
  if (now - since_ >= kPeriod) {
    before_ = now - since_ < 2 * kPeriod ? least_ : bytes;
    least_ = bytes;
    since_ = now;
  }
  least_ = std::min(least_, bytes);
  const int64_t growth = bytes - std::min(least_, before_);
  if (growth >= most_) return Level::kHigh;
  return growth >= most_ / 2 ? Level::kRising : Level::kNone;
}

}  // namespace hippodrome
