#include "server/batching/scheduling.h"

#include <algorithm>
#include <unordered_map>

namespace hippodrome {

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

BatchChoice ChooseBatch(std::span<const QueuedInput> line, const EncodingPolicy& policy) {
  const int64_t length = line.front().tokens;
  auto oldest = line.front().arrived;
  BatchChoice choice;
  int64_t tokens = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    oldest = std::min(oldest, line[i].arrived);
    const bool fits = choice.members.empty() || tokens + length <= policy.max_batch_tokens;
    if (line[i].tokens != length || !fits) continue;
    tokens += length;
    choice.members.push_back(i);
  }
  choice.start = AnyFull(line, policy.max_batch_tokens) ? oldest : oldest + policy.max_batch_delay;
  return choice;
}

}  // namespace hippodrome
