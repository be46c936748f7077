#include "server/http/connection_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hippodrome {
namespace {

constexpr auto kWaitingIndex = static_cast<size_t>(ConnectionPhase::kWaiting);
constexpr auto kReadingIndex = static_cast<size_t>(ConnectionPhase::kReading);

}  // namespace

ConnectionTable::Admission ConnectionTable::Admit(const std::string& address,
                                                  std::function<void()> close) {
  Admission admission;
  Close give_up;
  {
    std::lock_guard lock(mutex_);
    const bool address_full = limits_.per_address > 0 && addresses_[address] >= limits_.per_address;
    if (address_full || size_ >= limits_.connections) {
      give_up = GiveUp(address_full ? &address : nullptr);
      admission.evicted = give_up != nullptr;
      admission.address_full = address_full;
    }
    if (size_ < limits_.connections && (!address_full || admission.evicted)) {
      Entries& waiting = phases_[kWaitingIndex];
      const auto entry =
          waiting.insert(waiting.end(), {address, std::move(close), kWaitingIndex, Clock::now()});
      ++size_;
      ++addresses_[address];
      admission.place = std::make_unique<Place>(*this, entry);
    }
  }
  if (give_up) give_up();
  return admission;
}

bool ConnectionTable::Evict() {
  Close give_up;
  {
    std::lock_guard lock(mutex_);
    give_up = GiveUp(nullptr);
  }
  if (give_up) give_up();
  return give_up != nullptr;
}

void ConnectionTable::CloseAll() {
  std::vector<Close> closes;  // called without the mutex: the last to hold a connection destroys it
  {
    std::lock_guard lock(mutex_);
    for (size_t phase = 0; phase < kLeaving; ++phase) {
      for (const Entry& entry : phases_[phase]) closes.push_back(entry.close);
    }
  }
  for (const Close& close : closes) close();
}

int64_t ConnectionTable::size() const {
  std::lock_guard lock(mutex_);
  return size_;
}

bool ConnectionTable::FindVictim(const std::string* address, Entries::iterator& victim) {
  const auto safe_since = Clock::now() - kSafe;
  bool found = false;
  for (const size_t phase : {kWaitingIndex, kReadingIndex}) {
    Entries& entries = phases_[phase];
    const auto oldest = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return address == nullptr || entry.address == *address;
    });
    if (oldest == entries.end()) continue;
    const bool safe = oldest->since > safe_since;
    // Those that wait are safe only while others read for too long: they may be many, and silent.
    if (!safe || phase == kWaitingIndex) {
      victim = oldest;
      found = true;
    }
    if (!safe) break;
  }
  return found;
}

ConnectionTable::Close ConnectionTable::GiveUp(const std::string* address) {
  Entries::iterator victim;
  if (!FindVictim(address, victim)) return nullptr;
  Remove(victim);
  Move(victim, kLeaving);
  return std::exchange(victim->close, nullptr);
}

// Those that were given up do not count any more, though they are still here.
void ConnectionTable::Remove(Entries::iterator entry) {
  --size_;
  const auto count = addresses_.find(entry->address);
  if (--count->second == 0) addresses_.erase(count);
}

void ConnectionTable::Move(Entries::iterator entry, size_t phase) {
  phases_[phase].splice(phases_[phase].end(), phases_[entry->phase], entry);
  entry->phase = phase;
  entry->since = Clock::now();
}

ConnectionTable::Place::~Place() {
  std::lock_guard lock(table_.mutex_);
  if (entry_->phase != kLeaving) table_.Remove(entry_);
  table_.phases_[entry_->phase].erase(entry_);
}

bool ConnectionTable::Place::Enter(ConnectionPhase phase) {
  std::lock_guard lock(table_.mutex_);
  if (entry_->phase == kLeaving) return false;
  table_.Move(entry_, static_cast<size_t>(phase));
  return true;
}

}  // namespace hippodrome
