// Accepts connections for a library that would take any number of them, and stop for good when file
// descriptors run out. Knows nothing of gRPC.
#ifndef HIPPODROME_SERVER_GRPC_ACCEPT_LOOP_H_
#define HIPPODROME_SERVER_GRPC_ACCEPT_LOOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/grpc/flood_guard.h"
#include "server/grpc/memory_pressure.h"
#include "server/metrics/connection_metrics.h"

namespace hippodrome {

// More connections are closed on arrival. Where addresses tell clients apart (per_address < all),
// those of a client that floods end, and it is barred for a while. When the process's memory grows
// by `memory_growth` in ten seconds, connections end that brought more than 1 MiB since it grew by
// half of that: a peer that makes a library take memory without a bound is told from others by what
// it sends.
struct ConnectionLimits {
  int64_t all = 0;                    // >= 1
  int64_t per_address = 0;            // >= 1; of one client, as ClientOf() tells them
  int64_t memory_growth = INT64_MAX;  // bytes
  bool encrypted = false;             // what waits in sockets says nothing: floods are not seen
};

// Closes a file descriptor at its end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  int Release();

 private:
  int fd_ = -1;
};

// Has a thread of its own. Start(), Refuse() and Stop() are called from one thread.
//
// Who takes a connection does not say when it closes it, so the loop keeps a second descriptor of
// each socket and waits for its hang-up: that the other side reset it, or that it was shut down
// here. A library that closed a socket without shutdown() would leave it counted and open. Twenty
// times a second it also looks at what waits in sockets that data came to.
class AcceptLoop {
 public:
  // Takes ownership of a connected socket: non-blocking, close-on-exec, without Nagle's delay.
  using Take = std::function<void(int fd)>;

  // Listens at all addresses of `address` (HOST:PORT), but accepts nothing before Start(). Errors:
  // kInvalidArgument for an address that cannot be read, kUnavailable with the system's reason when
  // none can be bound. `metrics` must outlive the loop.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Listen(const std::string& address,
                                                            const ConnectionLimits& limits,
                                                            ConnectionMetrics& metrics);
  ~AcceptLoop() { Stop(); }

  // HOST:PORT as bound.
  const std::string& address() const { return address_; }
  void Start(Take take);
  // Closes its listeners, soon: who comes is refused by the system. Connections are still watched.
  void Refuse();
  // Accepts no more, closes its listeners and watches nothing; connections stay with who took them.
  // Idempotent.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    Descriptor watch;  // for its hang-up
    std::string client;
    int64_t received = 0;  // bytes, when memory began to rise
  };

  AcceptLoop(const ConnectionLimits& limits, ConnectionMetrics& metrics)
      : limits_(limits), metrics_(metrics), pressure_(limits.memory_growth) {}

  absl::Status Bind(const std::string& address);
  absl::Status MakeQueue();
  void Run();
  void Handle(int fd, uint32_t events);
  bool IsListener(int fd) const;
  void AcceptSome(int listener);
  void Admit(Descriptor socket, const std::string& client);
  // The connection that `watch` belongs to has ended.
  void Forget(int watch);
  // Has `watch` wait for a hang-up and for data, once.
  bool Watch(int watch, int operation);
  // Looks at connections whose data came since, and at memory.
  void Look();
  void EndFloods();
  void End(int fd);
  // Milliseconds until there is something to do that no descriptor tells; -1: never.
  int Wait() const;
  // Ends connections that bring much while memory grows.
  void RelievePressure();
  // Stops and resumes waiting for connections.
  void Pause();
  void Resume();
  void WaitForConnections(uint32_t events);

  const ConnectionLimits limits_;
  ConnectionMetrics& metrics_;
  std::string address_;
  Take take_;
  std::vector<Descriptor> listeners_;
  Descriptor queue_;  // of epoll
  Descriptor stop_;   // an eventfd: accept no more, or end, as `stopping_` says
  std::atomic<bool> stopping_ = false;
  std::thread thread_;

  // Of the thread.
  std::unordered_map<int, Connection> open_;  // by the descriptor that is watched
  std::map<std::string, int64_t> clients_;    // open connections by client
  MemoryPressure pressure_;
  MemoryPressure::Level level_ = MemoryPressure::Level::kNone;
  Clock::time_point look_at_;
  FloodGuard guard_;
  std::vector<int> heard_;  // watches of connections that brought data since the last look
  bool paused_ = false;
  Clock::time_point resume_at_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_ACCEPT_LOOP_H_
