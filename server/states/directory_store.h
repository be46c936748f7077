// States in files, which outlast the process and can be shared by several.
#ifndef HIPPODROME_SERVER_STATES_DIRECTORY_STORE_H_
#define HIPPODROME_SERVER_STATES_DIRECTORY_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/states/state_store.h"

namespace hippodrome {

// Files DIRECTORY/owner-HEX/HANDLE-EXPIRES.safetensors, HEX being the owner's name in hexadecimal.
// All is on the disk and nothing remembered, so that any number of servers may use one directory;
// each keeps the files together below `most_bytes`. A file appears under its name when it is whole
// and synced; it was used last when its time says. Damaged files are misses, and counted; files of
// other names are left alone. Makes the directory; owners' folders are for this user alone. Errors:
// kInternal with the path and the system's reason.
absl::StatusOr<std::unique_ptr<StateStore>> OpenDirectoryStore(
    const std::string& directory, int64_t most_bytes, StateStoreMetrics& metrics,
    StateStore::Clock clock = UnixSeconds);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_DIRECTORY_STORE_H_
