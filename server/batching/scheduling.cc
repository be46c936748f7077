#include "server/batching/scheduling.h"

#include <unordered_map>

namespace hippodrome {

Footprint Free(const Footprint& capacity, const Footprint& used) {
  return {.slots = capacity.slots - used.slots,
          .pages = capacity.pages - used.pages,
          .bytes = capacity.bytes - used.bytes};
}

size_t Admissible(std::span<const Footprint> queue, Footprint free) {
  size_t count = 0;
  for (const Footprint& cost : queue) {
    if (cost.slots > free.slots || cost.pages > free.pages || cost.bytes > free.bytes) break;
    free = Free(free, cost);
    ++count;
  }
  return count;
}

namespace {

// Whether the waiting inputs of some length fill a batch by themselves.
bool AnyFull(std::span<const QueuedInput> queue, int64_t max_batch_tokens) {
  std::unordered_map<int64_t, int64_t> tokens;  // by length
  for (const QueuedInput& input : queue) {
    int64_t& sum = tokens[input.tokens];
    sum += input.tokens;
    if (sum + input.tokens > max_batch_tokens) return true;
  }
  return false;
}

}  // namespace

BatchChoice ChooseBatch(std::span<const QueuedInput> queue, const EncodingPolicy& policy) {
  const QueuedInput& oldest = queue.front();
  BatchChoice choice;
  int64_t tokens = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue[i].tokens != oldest.tokens) continue;
    if (i > 0 && tokens + queue[i].tokens > policy.max_batch_tokens) break;
    tokens += queue[i].tokens;
    choice.members.push_back(i);
  }
  const bool full = AnyFull(queue, policy.max_batch_tokens);
  choice.start = full ? oldest.arrived : oldest.arrived + policy.max_batch_delay;
  return choice;
}

}  // namespace hippodrome
