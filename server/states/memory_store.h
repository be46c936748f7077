// States in the memory of this process.
#ifndef HIPPODROME_SERVER_STATES_MEMORY_STORE_H_
#define HIPPODROME_SERVER_STATES_MEMORY_STORE_H_

#include <cstdint>
#include <memory>

#include "server/states/state_store.h"

namespace hippodrome {

// Holds files of `most_bytes` together. What readers still have when it is evicted stays theirs.
std::unique_ptr<StateStore> MakeMemoryStore(int64_t most_bytes, StateStoreMetrics& metrics,
                                            StateStore::Clock clock = UnixSeconds);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_MEMORY_STORE_H_
