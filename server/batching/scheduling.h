// Which waiting work enters or runs next, and when: pure functions.
#ifndef HIPPODROME_SERVER_BATCHING_SCHEDULING_H_
#define HIPPODROME_SERVER_BATCHING_SCHEDULING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/generator.h"

namespace hippodrome {

// ---- Decoders
// ------------------------------------------------------------------------------------

// What is free of `capacity`. REQUIRES: used <= capacity in every field.
Footprint Free(const Footprint& capacity, const Footprint& used);

// How many requests from the front of `queue` (their costs, oldest first) fit into `free` together.
// First come, first served: nobody overtakes a large request, so nobody waits for ever.
size_t Admissible(std::span<const Footprint> queue, Footprint free);

// ---- Encoders
// ------------------------------------------------------------------------------------

struct QueuedInput {
  int64_t tokens = 0;  // padding included; inputs of one batch have the same number
  std::chrono::steady_clock::time_point arrived;
};

struct EncodingPolicy {
  int64_t max_batch_tokens = 0;                 // one input may exceed it, alone
  std::chrono::microseconds max_batch_delay{};  // that an input waits for others to join it
};

struct BatchChoice {
  std::vector<size_t> members;                  // places in the queue, rising
  std::chrono::steady_clock::time_point start;  // not before this
};

// The batch of the oldest input: those of its length, in order of arrival, as many as fit. So
// nobody waits for ever. It starts at once when there is more work than one batch takes, of its
// length or of another, since then waiting for company leaves the engine idle; else when the oldest
// has waited for max_batch_delay. `queue`: oldest first, at least one.
BatchChoice ChooseBatch(std::span<const QueuedInput> queue, const EncodingPolicy& policy);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_SCHEDULING_H_
