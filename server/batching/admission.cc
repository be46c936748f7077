#include "server/batching/admission.h"

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

}  // namespace hippodrome
