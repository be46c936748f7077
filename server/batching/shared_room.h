// What clients hold of something of which there is only so much.
#ifndef HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_
#define HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/batching/caller.h"

namespace hippodrome {

// Keeps room for others: a client that would hold h units, where f are free then, needs
// h (1 - share) <= share f. Hence one client holds at most its share of the capacity, and n clients
// that want all there is leave 1 / (1 + n share / (1 - share)) of it free: whoever holds nothing
// finds room, unless it wants more than that at once. Calls in the background count as one more
// client, whoever makes them, with kBackgroundShare: they leave others as much as they hold. Not
// thread-safe.
class SharedRoom {
 public:
  // REQUIRES: share in [0, 1]; 1: who comes first takes everything.
  SharedRoom(int64_t capacity, double share) : capacity_(capacity), share_(share) {}

  int64_t held() const { return held_; }
  // Whether more is wanted than there is. While nothing is held, all that is wanted is there.
  bool Full(int64_t wanted) const { return held_ > 0 && held_ + wanted > capacity_; }
  // Whether the caller's client, or the background, wants more than may be its own. Who holds
  // nothing never does.
  bool Exceeds(const Caller& caller, int64_t wanted) const;

  // REQUIRES: amount >= 0.
  void Add(const Caller& caller, int64_t amount);
  // REQUIRES: the caller's client, or the background, holds as much.
  void Remove(const Caller& caller, int64_t amount);

 private:
  int64_t Own(const Caller& caller) const;

  const int64_t capacity_;
  const double share_;
  int64_t held_ = 0;
  int64_t background_ = 0;                  // of that
  std::map<std::string, int64_t> held_by_;  // the others who hold something
};

// Why a caller finds no room in a queue.
struct QueueRefusal {
  const char* reason;  // as metrics have it
  const char* text;
};
// `full`: there is none; else the caller has its own part of it.
QueueRefusal RefusalOf(const Caller& caller, bool full);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_
