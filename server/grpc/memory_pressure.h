// When the process's memory grows faster than ordinary work makes it.
#ifndef HIPPODROME_SERVER_GRPC_MEMORY_PRESSURE_H_
#define HIPPODROME_SERVER_GRPC_MEMORY_PRESSURE_H_

#include <chrono>
#include <cstdint>

namespace hippodrome {

// Bytes that are resident for this process alone, files apart. 0 if the system does not say.
int64_t PrivateBytes();

// Bytes that a TCP socket has received since it was opened. 0 if the system does not say.
int64_t BytesReceived(int socket);

// For one thread.
class MemoryPressure {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Level : uint8_t { kNone, kRising, kHigh };

  static constexpr std::chrono::seconds kPeriod{10};

  // `most`: bytes by which memory may grow in a period, or a little longer.
  explicit MemoryPressure(int64_t most) : most_(most) {}

  // kRising from half of `most` on, kHigh from `most` on. To be called often.
  Level Look(int64_t bytes, Clock::time_point now);

 private:
  const int64_t most_;
  // The least bytes of this period, which began at since_, and of the one before.
  int64_t least_ = INT64_MAX;
  int64_t before_ = INT64_MAX;
  Clock::time_point since_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_MEMORY_PRESSURE_H_
