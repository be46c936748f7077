// The store that a server was asked for.
#ifndef HIPPODROME_SERVER_STATES_OPEN_STATE_STORE_H_
#define HIPPODROME_SERVER_STATES_OPEN_STATE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/states/redis_connection.h"
#include "server/states/state_store.h"

namespace hippodrome {

// `place`: "memory", "redis://HOST:PORT" or "redis://HOST:PORT/DATABASE", or else a directory.
// `most_bytes`: of memory or of a directory; Redis has a limit of its own. Errors: kInvalidArgument
// for what is no address, those of OpenDirectoryStore().
absl::StatusOr<std::unique_ptr<StateStore>> OpenStateStore(const std::string& place,
                                                           int64_t most_bytes,
                                                           StateStoreMetrics& metrics);

// Of "redis://HOST:PORT/DATABASE". Errors: kInvalidArgument.
absl::StatusOr<RedisAddress> ParseRedisAddress(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_OPEN_STATE_STORE_H_
