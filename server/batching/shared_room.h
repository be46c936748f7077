// What clients hold of something of which there is only so much.
#ifndef HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_
#define HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_

#include <cstdint>
#include <map>
#include <string>

namespace hippodrome {

// Keeps room for others: a client that would hold h units, where f are free then, needs
// h (1 - share) <= share f. Hence one client holds at most its share of the capacity, and n clients
// that want all there is leave 1 / (1 + n share / (1 - share)) of it free: whoever holds nothing
// finds room, unless it wants more than that at once. Not thread-safe.
class SharedRoom {
 public:
  // REQUIRES: share in [0, 1]; 1: who comes first takes everything.
  SharedRoom(int64_t capacity, double share) : capacity_(capacity), share_(share) {}

  int64_t held() const { return held_; }
  // Whether more is wanted than there is. While nothing is held, all that is wanted is there.
  bool Full(int64_t wanted) const { return held_ > 0 && held_ + wanted > capacity_; }
  // Whether `client` wants more than may be its own. Who holds nothing never does.
  bool Exceeds(const std::string& client, int64_t wanted) const;

  // REQUIRES: amount >= 0.
  void Add(const std::string& client, int64_t amount);
  // REQUIRES: `client` holds as much.
  void Remove(const std::string& client, int64_t amount);

 private:
  const int64_t capacity_;
  const double share_;
  int64_t held_ = 0;
  std::map<std::string, int64_t> held_by_;  // those who hold something
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_SHARED_ROOM_H_
