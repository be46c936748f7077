// Clients that flood HTTP/2 with frames: how they are told from clients that call, and kept away.
#ifndef HIPPODROME_SERVER_GRPC_FLOOD_GUARD_H_
#define HIPPODROME_SERVER_GRPC_FLOOD_GUARD_H_

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace hippodrome {

// How much of what a client sent, and nobody read yet, is looked at. A client whose bytes are read
// as they come is no flood, whatever they are.
inline constexpr size_t kFloodSample = size_t{32} << 10;

// Whether `bytes`, cut out of what a client sends in HTTP/2, begin and end anywhere in frames of
// which at least half make work and carry no part of a call: pings, settings, resets, empty data;
// or are a header block that exceeds all limits. Messages, however many and large, are none. Costs
// a fraction of a millisecond at most.
bool IsFlood(std::string_view bytes);

// Whether what waits in a TCP socket is that.
bool FloodWaits(int socket);

// For one thread.
class FloodGuard {
 public:
  using Clock = std::chrono::steady_clock;

  // A flood of `client` waits in one of its sockets. True if that connection must end: from the
  // third time in a second on. Then the client is barred for ten seconds.
  bool Saw(const std::string& client, Clock::time_point now);
  // Whether new connections of `client` must be refused.
  bool Bars(const std::string& client, Clock::time_point now) const;

 private:
  struct Floods {
    int seen = 0;
    Clock::time_point since;
    Clock::time_point barred_until;
  };
  std::map<std::string, Floods> clients_;  // of the last seconds
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_FLOOD_GUARD_H_
