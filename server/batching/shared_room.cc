#include "server/batching/shared_room.h"

namespace hippodrome {

int64_t SharedRoom::Own(const Caller& caller) const {
  if (caller.background) return background_;
  const auto own = held_by_.find(caller.client);
  return own == held_by_.end() ? 0 : own->second;
}

bool SharedRoom::Exceeds(const Caller& caller, int64_t wanted) const {
  const int64_t own = Own(caller);
  if (own == 0) return false;
  const double share = caller.background ? kBackgroundShare : share_;
  const auto after = static_cast<double>(own + wanted);
  const auto free = static_cast<double>(capacity_ - held_ - wanted);
  return after * (1 - share) > share * free;
}

void SharedRoom::Add(const Caller& caller, int64_t amount) {
  if (amount == 0) return;
  (caller.background ? background_ : held_by_[caller.client]) += amount;
  held_ += amount;
}

void SharedRoom::Remove(const Caller& caller, int64_t amount) {
  if (amount == 0) return;
  held_ -= amount;
  if (caller.background) {
    background_ -= amount;
    return;
  }
  const auto own = held_by_.find(caller.client);
  own->second -= amount;
  if (own->second == 0) held_by_.erase(own);
}

QueueRefusal RefusalOf(const Caller& caller, bool full) {
  if (full) return {"queue_full", "the queue is full"};
  if (caller.background) {
    return {"background_share", "the background's share of the queue is full"};
  }
  return {"client_share", "the client's share of the queue is full"};
}

}  // namespace hippodrome
