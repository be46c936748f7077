#include "server/states/memory_store.h"

#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

class MemoryStore final : public StateStore {
 public:
  MemoryStore(int64_t most_bytes, StateStoreMetrics& metrics, Clock clock)
      : StateStore(metrics), most_bytes_(most_bytes), clock_(std::move(clock)) {}

  bool shared() const override { return false; }

 private:
  using Key = std::pair<std::string, std::string>;  // owner, handle
  struct Entry {
    Key key;
    StateBytes file;
    int64_t expires_at = 0;
  };
  using Entries = std::list<Entry>;

  absl::StatusOr<StoredState> DoPut(const std::string& owner, const std::string& handle,
                                    const StateBytes& file, std::chrono::seconds lives) override {
    const int64_t bytes = std::ssize(*file);
    HIPPODROME_RETURN_IF_ERROR(CheckFits(bytes, most_bytes_));
    const std::lock_guard lock(mutex_);
    const int64_t now = clock_();
    Key key{owner, handle};
    const auto old = places_.find(key);
    if (old != places_.end()) Erase(old->second);
    MakeRoom(bytes, now);
    entries_.push_front({key, file, now + lives.count()});
    places_[std::move(key)] = entries_.begin();
    bytes_ += bytes;
    Report();
    return StoredState{handle, bytes, now + lives.count()};
  }

  absl::StatusOr<StateBytes> DoGet(const std::string& owner, const std::string& handle) override {
    const std::lock_guard lock(mutex_);
    const auto found = Find(owner, handle);
    if (found == entries_.end()) return NoSuchState();
    entries_.splice(entries_.begin(), entries_, found);
    return found->file;
  }

  absl::Status DoRemove(const std::string& owner, const std::string& handle) override {
    const std::lock_guard lock(mutex_);
    const auto found = Find(owner, handle);
    if (found == entries_.end()) return NoSuchState();
    Erase(found);
    Report();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StoredState>> DoList(const std::string& owner) override {
    const std::lock_guard lock(mutex_);
    const int64_t now = clock_();
    std::vector<StoredState> states;
    for (auto at = places_.lower_bound({owner, ""});
         at != places_.end() && at->first.first == owner; ++at) {
      const Entry& entry = *at->second;
      if (entry.expires_at <= now) continue;
      states.push_back({entry.key.second, std::ssize(*entry.file), entry.expires_at});
    }
    return states;
  }

  // Of what has not expired.
  Entries::iterator Find(const std::string& owner, const std::string& handle) {
    const auto place = places_.find({owner, handle});
    if (place == places_.end() || place->second->expires_at <= clock_()) return entries_.end();
    return place->second;
  }

  // Lets go of what has expired, then of what was not used for longest.
  void MakeRoom(int64_t bytes, int64_t now) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (entry->expires_at <= now) Erase(entry);
      entry = next;
    }
    int64_t evicted = 0;
    for (; bytes_ + bytes > most_bytes_; ++evicted) Erase(std::prev(entries_.end()));
    metrics().Evicted(evicted);
  }

  void Erase(Entries::iterator entry) {
    bytes_ -= std::ssize(*entry->file);
    places_.erase(entry->key);
    entries_.erase(entry);
  }

  void Report() { metrics().SetUse(std::ssize(entries_), bytes_); }

  const int64_t most_bytes_;
  const Clock clock_;
  std::mutex mutex_;  // guards all below
  Entries entries_;   // what was used last comes first
  std::map<Key, Entries::iterator> places_;
  int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<StateStore> MakeMemoryStore(int64_t most_bytes, StateStoreMetrics& metrics,
                                            StateStore::Clock clock) {
  return std::make_unique<MemoryStore>(most_bytes, metrics, std::move(clock));
}

}  // namespace hippodrome
