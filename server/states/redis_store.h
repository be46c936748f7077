// States in Redis, which all servers share that use it.
#ifndef HIPPODROME_SERVER_STATES_REDIS_STORE_H_
#define HIPPODROME_SERVER_STATES_REDIS_STORE_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "server/states/redis_connection.h"
#include "server/states/state_store.h"

namespace hippodrome {

struct RedisStoreOptions {
  RedisAddress address;
  // Of each call, whatever Redis does meanwhile.
  std::chrono::milliseconds time_limit{2000};
  // After a call that failed, others fail at once for so long.
  std::chrono::milliseconds rest{1000};
  // Of a value: Redis takes at most 512 MB.
  size_t chunk_bytes = size_t{16} << 20;
};

// Keys, OWNER being the owner's name in hexadecimal, all with a time to live:
//   hippodrome:state:OWNER:HANDLE                   "VERSION BYTES EXPIRES": a state that is whole
//   hippodrome:state:OWNER:HANDLE:VERSION:0, 1 ..   its bytes
//   hippodrome:states:OWNER                         a hash of its handles with the same text
// How much room there is, and what goes first, is Redis's to say (maxmemory, maxmemory-policy):
// what it evicts is a miss. Needs Redis 7. Connects when it is called first. The process must
// ignore SIGPIPE.
std::unique_ptr<StateStore> MakeRedisStore(const RedisStoreOptions& options,
                                           StateStoreMetrics& metrics);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_REDIS_STORE_H_
