// Where states wait until their session goes on.
#ifndef HIPPODROME_SERVER_STATES_STATE_STORE_H_
#define HIPPODROME_SERVER_STATES_STATE_STORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/metrics/state_store_metrics.h"

namespace hippodrome {

// A state file (engine/state/state_file.h), shared with whoever reads it.
using StateBytes = std::shared_ptr<const std::string>;

struct StoredState {
  std::string handle;
  int64_t bytes = 0;
  int64_t expires_at = 0;  // Unix seconds
};

inline constexpr size_t kStateHandleDigits = 32;

// 128 random bits in hexadecimal. Errors: kInternal without randomness.
absl::StatusOr<std::string> NewStateHandle();
// Whether `text` can be a handle: 32 digits, in lower case.
inline bool IsStateHandle(std::string_view text) {
  return text.size() == kStateHandleDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// States by owner and handle: what one owner stored does not exist for others, who may have a state
// of their own under the same handle. A store may forget a state at any time, the least recently
// used first. Thread-safe. Calls take the time of a disk or a network, within limits of the store:
// they are not for threads that compute.
//
// Errors: kNotFound, the same for all that is not there, be it unknown, expired, evicted, damaged,
// of another owner, or no handle at all; kResourceExhausted for what can never be held;
// kUnavailable where the store is slow, full or gone, in which case trying again may help.
class StateStore {
 public:
  // Seconds since 1970, by which states expire.
  using Clock = std::function<int64_t()>;

  explicit StateStore(StateStoreMetrics& metrics) : metrics_(metrics) {}
  virtual ~StateStore() = default;
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // Whether what is here outlasts this process, for others to find it.
  virtual bool shared() const = 0;

  // Keeps `file` for `lives`, in the place of what the owner has under this handle. REQUIRES:
  // IsStateHandle(handle), lives > 0.
  absl::StatusOr<StoredState> Put(const std::string& owner, const std::string& handle,
                                  const StateBytes& file, std::chrono::seconds lives);
  absl::StatusOr<StateBytes> Get(const std::string& owner, const std::string& handle);
  absl::Status Remove(const std::string& owner, const std::string& handle);
  // All of an owner, by handle.
  absl::StatusOr<std::vector<StoredState>> List(const std::string& owner);

 protected:
  StateStoreMetrics& metrics() { return metrics_; }

 private:
  virtual absl::StatusOr<StoredState> DoPut(const std::string& owner, const std::string& handle,
                                            const StateBytes& file, std::chrono::seconds lives) = 0;
  virtual absl::StatusOr<StateBytes> DoGet(const std::string& owner, const std::string& handle) = 0;
  virtual absl::Status DoRemove(const std::string& owner, const std::string& handle) = 0;
  virtual absl::StatusOr<std::vector<StoredState>> DoList(const std::string& owner) = 0;

  StateStoreMetrics& metrics_;
};

// The system's time, as StateStore::Clock gives it.
int64_t UnixSeconds();

// The one error for what is not there.
absl::Status NoSuchState();
// kResourceExhausted, with both numbers, for a file larger than all that a store may hold.
absl::Status CheckFits(int64_t bytes, int64_t most_bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_STATE_STORE_H_
