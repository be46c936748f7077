// Two fair queues, one behind the other: calls that somebody waits for, and those in the
// background.
#ifndef HIPPODROME_SERVER_BATCHING_CLASS_QUEUE_H_
#define HIPPODROME_SERVER_BATCHING_CLASS_QUEUE_H_

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "server/batching/caller.h"
#include "server/batching/fair_queue.h"

namespace hippodrome {

// Each class is a FairQueue with clocks of its own, so that what that promises holds within the
// class. In the line all of the background are behind all others: where the line is served in its
// order, they starve while others wait, which is meant. An Item has a member `background`, which is
// its caller's. Not thread-safe.
template <typename Item>
class ClassQueue {
 public:
  using Queue = FairQueue<Item>;
  using Entry = typename Queue::Entry;

  size_t size() const { return interactive_.size() + background_.size(); }
  // Of the two classes.
  const Queue& interactive() const { return interactive_; }
  const Queue& background() const { return background_; }

  // REQUIRES: cost > 0; item.background == caller.background.
  const Entry& Add(const Caller& caller, double cost, Item item) {
    return Of(item).Add(caller.client, caller.number, cost, std::move(item));
  }
  // All entries, the next one first.
  std::vector<const Entry*> Line() const {
    std::vector<const Entry*> line = interactive_.Line();
    const std::vector<const Entry*> behind = background_.Line();
    line.insert(line.end(), behind.begin(), behind.end());
    return line;
  }
  // As in FairQueue.
  Item Take(const Entry& entry) { return Of(entry.item).Take(entry); }
  Item Remove(const Entry& entry) { return Of(entry.item).Remove(entry); }
  template <typename Predicate>
  std::vector<Item> RemoveIf(const Predicate& gone) {
    std::vector<Item> items = interactive_.RemoveIf(gone);
    std::vector<Item> others = background_.RemoveIf(gone);
    std::move(others.begin(), others.end(), std::back_inserter(items));
    return items;
  }

 private:
  Queue& Of(const Item& item) { return item.background ? background_ : interactive_; }

  Queue interactive_;
  Queue background_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_CLASS_QUEUE_H_
