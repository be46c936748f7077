// Which waiting inputs of an encoder run next, and when: a pure function.
#ifndef HIPPODROME_SERVER_BATCHING_SCHEDULING_H_
#define HIPPODROME_SERVER_BATCHING_SCHEDULING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

struct QueuedInput {
  int64_t tokens = 0;  // padding included; inputs of one batch have the same number
  std::chrono::steady_clock::time_point arrived;
};

struct EncodingPolicy {
  int64_t max_batch_tokens = 0;                 // one input may exceed it, alone
  std::chrono::microseconds max_batch_delay{};  // that an input waits for others to join it
};

struct BatchChoice {
  std::vector<size_t> members;                  // places in the line, rising
  std::chrono::steady_clock::time_point start;  // not before this
};

// The batch of the first in line: those of its length, in the line's order, as many as fit. It
// starts at once when there is more work than one batch takes, of its length or of another, since
// then waiting for company leaves the engine idle; else when the oldest has waited for
// max_batch_delay. So whoever is behind somebody else in line, as those in the background are,
// keeps no place from them, and no batch back. `line`: the first in line first, at least one.
BatchChoice ChooseBatch(std::span<const QueuedInput> line, const EncodingPolicy& policy);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_SCHEDULING_H_
