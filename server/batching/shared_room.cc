#include "server/batching/shared_room.h"

namespace hippodrome {

bool SharedRoom::Exceeds(const std::string& client, int64_t wanted) const {
  const auto own = held_by_.find(client);
  if (own == held_by_.end()) return false;
  const auto after = static_cast<double>(own->second + wanted);
  const auto free = static_cast<double>(capacity_ - held_ - wanted);
  return after * (1 - share_) > share_ * free;
}

void SharedRoom::Add(const std::string& client, int64_t amount) {
  if (amount == 0) return;
  held_by_[client] += amount;
  held_ += amount;
}

void SharedRoom::Remove(const std::string& client, int64_t amount) {
  if (amount == 0) return;
  const auto own = held_by_.find(client);
  own->second -= amount;
  held_ -= amount;
  if (own->second == 0) held_by_.erase(own);
}

}  // namespace hippodrome
