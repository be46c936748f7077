// A queue that is fair to clients, and to the calls of a client.
#ifndef HIPPODROME_SERVER_BATCHING_FAIR_QUEUE_H_
#define HIPPODROME_SERVER_BATCHING_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

namespace hippodrome {

// Start-time fair queueing on two levels. An item has a cost and belongs to a call, a call to a
// client. Whoever waits, client or call, has a tag: the cost that it has been served so far. The
// smallest tag is next; of equals, who came first. The items of a call keep their order.
//
// Who begins to wait gets no smaller tag than the level's clock, which rises, with each item that
// is served, by its cost divided among those who wait: as their mean tag does. Hence:
//
//  - Fair: while two clients wait, and the line is served in its order, what they are served
//  differs
//    by no more than the largest cost and what they differed by when the second came.
//  - Nobody starves: let T be the tag of an item, V the clock when it came, n the most clients that
//    can wait at once and c the smallest cost. Each service raises the clock by at least c / n.
//    After n (T - V) / c of them the clock has passed T, and who comes now is behind; each of those
//    who are here has a tag that rises by at least c whenever one of its items goes ahead. So the
//    number of items that go ahead is finite, whoever comes. The same holds among the calls of a
//    client.
//
// Not thread-safe.
template <typename Item>
class FairQueue {
  struct Client;
  struct Call;

 public:
  // Stays where it is until it is taken or removed.
  class Entry {
   public:
    Item item;

    double cost() const { return cost_; }
    // Rising with each entry that was added.
    uint64_t arrival() const { return arrival_; }
    const std::string& client() const { return client_->name; }

   private:
    friend class FairQueue;
    Entry(Item item, double cost, uint64_t arrival, Client* client, Call* call)
        : item(std::move(item)), cost_(cost), arrival_(arrival), client_(client), call_(call) {}

    double cost_;
    uint64_t arrival_;
    Client* client_;
    Call* call_;
  };

  size_t size() const { return size_; }
  // Clients that have entries here.
  size_t clients() const { return waiting_clients_; }
  // Those, and others that were served ahead of the clock.
  size_t known_clients() const { return clients_.size(); }

  // REQUIRES: cost > 0.
  const Entry& Add(const std::string& client, uint64_t call, double cost, Item item);
  // All entries, the next one first.
  std::vector<const Entry*> Line() const;
  // Serves an entry, at any place of the line.
  Item Take(const Entry& entry);
  // Gives up an entry, which was not served.
  Item Remove(const Entry& entry) { return Erase(entry); }
  // Gives up those for whom `gone(item)`. The items, in no order.
  template <typename Predicate>
  std::vector<Item> RemoveIf(const Predicate& gone);

 private:
  struct Call {
    uint64_t number = 0;
    double tag = 0;
    std::map<uint64_t, Entry> entries;  // by arrival
  };
  struct Client {
    std::string name;
    double tag = 0;
    double clock = 0;                // of its calls
    std::map<uint64_t, Call> calls;  // those that have entries
  };
  struct Place {
    double tag;
    uint64_t arrival;
    double cost;
    const Entry* entry;
    bool operator<(const Place& other) const {
      return tag != other.tag ? tag < other.tag : arrival < other.arrival;
    }
  };

  // Most often they are in order already.
  using Places = typename std::vector<Place>::iterator;
  static void Sort(Places begin, Places end) {
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
  }

  void Forget();
  Item Erase(const Entry& entry);

  std::map<std::string, Client> clients_;  // those that have entries, or a tag above the clock
  double clock_ = 0;
  uint64_t next_arrival_ = 0;
  size_t size_ = 0;
  size_t waiting_clients_ = 0;
  size_t forget_at_ = 64;  // clients
};

template <typename Item>
const typename FairQueue<Item>::Entry& FairQueue<Item>::Add(const std::string& name,
                                                            uint64_t number, double cost,
                                                            Item item) {
  if (clients_.size() >= forget_at_) Forget();
  Client& client = clients_[name];
  client.name = name;
  const bool new_client = client.calls.empty();
  Call& call = client.calls[number];
  const absl::Cleanup forget = [&] {  // where memory runs out
    if (call.entries.empty()) client.calls.erase(number);
  };
  const bool new_call = call.entries.empty();
  const uint64_t arrival = next_arrival_++;
  const Entry& entry =
      call.entries.emplace(arrival, Entry(std::move(item), cost, arrival, &client, &call))
          .first->second;
  if (new_client) {
    client.tag = std::max(client.tag, clock_);
    ++waiting_clients_;
  }
  if (new_call) {
    call.number = number;
    call.tag = client.clock;
  }
  ++size_;
  return entry;
}

template <typename Item>
std::vector<const typename FairQueue<Item>::Entry*> FairQueue<Item>::Line() const {
  std::vector<Place> line;
  line.reserve(size_);
  for (const auto& [name, client] : clients_) {
    const auto begin = static_cast<std::ptrdiff_t>(line.size());
    for (const auto& [number, call] : client.calls) {
      double tag = call.tag;
      for (const auto& [arrival, entry] : call.entries) {
        line.push_back({tag, arrival, entry.cost(), &entry});
        tag += entry.cost();
      }
    }
    Sort(line.begin() + begin, line.end());
    double tag = client.tag;
    for (auto place = line.begin() + begin; place != line.end(); ++place) {
      place->tag = tag;
      tag += place->cost;
    }
  }
  Sort(line.begin(), line.end());
  std::vector<const Entry*> entries;
  entries.reserve(line.size());
  for (const Place& place : line) entries.push_back(place.entry);
  return entries;
}

template <typename Item>
Item FairQueue<Item>::Take(const Entry& entry) {
  Client& client = *entry.client_;
  client.clock += entry.cost() / static_cast<double>(client.calls.size());
  client.tag += entry.cost();
  entry.call_->tag += entry.cost();
  clock_ += entry.cost() / static_cast<double>(waiting_clients_);
  return Erase(entry);
}

template <typename Item>
template <typename Predicate>
std::vector<Item> FairQueue<Item>::RemoveIf(const Predicate& gone) {
  std::vector<const Entry*> entries;
  for (const auto& [name, client] : clients_) {
    for (const auto& [number, call] : client.calls) {
      for (const auto& [arrival, entry] : call.entries) {
        if (gone(entry.item)) entries.push_back(&entry);
      }
    }
  }
  std::vector<Item> items;
  items.reserve(entries.size());
  for (const Entry* entry : entries) items.push_back(Erase(*entry));
  return items;
}

template <typename Item>
Item FairQueue<Item>::Erase(const Entry& entry) {
  Client& client = *entry.client_;
  Call& call = *entry.call_;
  auto node = call.entries.extract(entry.arrival());
  --size_;
  const uint64_t number = call.number;
  if (call.entries.empty()) client.calls.erase(number);
  if (client.calls.empty()) --waiting_clients_;
  // Who waits for nobody owes nothing: numbers begin anew.
  if (size_ == 0) {
    clients_.clear();
    clock_ = 0;
  }
  return std::move(node.mapped().item);
}

// A client that does not wait and would begin at the clock is as good as a new one.
template <typename Item>
void FairQueue<Item>::Forget() {
  std::erase_if(clients_, [&](const auto& named) {
    return named.second.calls.empty() && named.second.tag <= clock_;
  });
  forget_at_ = 64 + 2 * clients_.size();
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_FAIR_QUEUE_H_
