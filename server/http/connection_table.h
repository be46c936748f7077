// Who is connected to a listener, and who makes room for whom.
#ifndef HIPPODROME_SERVER_HTTP_CONNECTION_TABLE_H_
#define HIPPODROME_SERVER_HTTP_CONNECTION_TABLE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hippodrome {

// Of a connection: nothing of the next request has come; some of it has; all of it has.
enum class ConnectionPhase : uint8_t { kWaiting, kReading, kAnswering };

// Thread-safe.
class ConnectionTable {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    int64_t connections = 0;
    int64_t per_address = 0;  // 0: as many as there may be
  };
  // A request that is still on its way is safe from newcomers for so long, and so is a connection
  // that waits for one while another has been reading one for longer.
  static constexpr std::chrono::milliseconds kSafe{100};

  class Place;
  struct Admission {
    std::unique_ptr<Place> place;  // null: refused
    bool evicted = false;          // another was given up
    bool address_full = false;     // why it was refused; else all places are taken
  };

  explicit ConnectionTable(const Limits& limits) : limits_(limits) {}

  // Takes a newcomer. Where there is no place, the connection that has waited longest for a request
  // is given up, or else, or if that is safe still, the one that has been reading one longest: of
  // the same address, where that has all it may have. `close` gives this one up, in time; it is
  // called once at most, on any thread, maybe before this returns, and must be cheap.
  Admission Admit(const std::string& address, std::function<void()> close);
  // Gives up a connection as for a newcomer, if there is one.
  bool Evict();
  // Gives up all.
  void CloseAll();
  // Those that were not given up.
  int64_t size() const;

 private:
  // Phases by their number, and behind them those that were given up.
  static constexpr size_t kLeaving = 3;
  struct Entry {
    std::string address;
    std::function<void()> close;
    size_t phase = 0;
    Clock::time_point since;
  };
  using Entries = std::list<Entry>;  // those that came first to a phase are first
  using Close = std::function<void()>;

  // Under the mutex. `address` null: of any.
  bool FindVictim(const std::string* address, Entries::iterator& victim);
  void Move(Entries::iterator entry, size_t phase);
  // Returns what gives the victim up, for when the mutex is free; null where there is none.
  Close GiveUp(const std::string* address);
  void Remove(Entries::iterator entry);

  const Limits limits_;
  mutable std::mutex mutex_;  // guards what follows
  std::array<Entries, 4> phases_;
  std::map<std::string, int64_t> addresses_;  // how many of each, without those that were given up
  int64_t size_ = 0;                          // the same of all
};

// Leaves the table with its destructor.
class ConnectionTable::Place {
 public:
  Place(ConnectionTable& table, std::list<Entry>::iterator entry) : table_(table), entry_(entry) {}
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // The connection comes to another phase. False if it was given up: then it must end.
  bool Enter(ConnectionPhase phase);

 private:
  ConnectionTable& table_;
  const std::list<Entry>::iterator entry_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_CONNECTION_TABLE_H_
