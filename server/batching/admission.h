// Which waiting requests may enter: a pure function.
#ifndef HIPPODROME_SERVER_BATCHING_ADMISSION_H_
#define HIPPODROME_SERVER_BATCHING_ADMISSION_H_

#include <cstddef>
#include <span>

#include "engine/generator.h"

namespace hippodrome {

// What is free of `capacity`. REQUIRES: used <= capacity in every field.
Footprint Free(const Footprint& capacity, const Footprint& used);

// How many requests from the front of `queue` (their costs, oldest first) fit into `free` together.
// First come, first served: nobody overtakes a large request, so nobody waits for ever.
size_t Admissible(std::span<const Footprint> queue, Footprint free);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ADMISSION_H_
