#include "server/states/state_store.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kHandleBytes = kStateHandleDigits / 2;

}  // namespace

absl::StatusOr<std::string> NewStateHandle() {
  std::string bytes(kHandleBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kHandleBytes) != 1) {
    return Internal("OpenSSL has no random bytes");
  }
  return absl::BytesToHexString(bytes);
}

int64_t UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

absl::Status NoSuchState() { return NotFound("state: there is no such handle"); }

absl::Status CheckFits(int64_t bytes, int64_t most_bytes) {
  if (bytes <= most_bytes) return absl::OkStatus();
  return ResourceExhausted(
      fmt::format("state: {} bytes, but the store holds {} in all", bytes, most_bytes));
}

absl::StatusOr<StoredState> StateStore::Put(const std::string& owner, const std::string& handle,
                                            const StateBytes& file, std::chrono::seconds lives) {
  auto stored = DoPut(owner, handle, file, lives);
  if (stored.ok()) {
    metrics_.Stored(stored->bytes);
  } else {
    metrics_.Failed(StateOperation::kPut);
  }
  return stored;
}

absl::StatusOr<StateBytes> StateStore::Get(const std::string& owner, const std::string& handle) {
  absl::StatusOr<StateBytes> found = NoSuchState();
  if (IsStateHandle(handle)) found = DoGet(owner, handle);
  if (found.ok()) {
    metrics_.Hit();
  } else if (absl::IsNotFound(found.status())) {
    metrics_.Miss();
  } else {
    metrics_.Failed(StateOperation::kGet);
  }
  return found;
}

absl::Status StateStore::Remove(const std::string& owner, const std::string& handle) {
  if (!IsStateHandle(handle)) return NoSuchState();
  const absl::Status removed = DoRemove(owner, handle);
  if (!removed.ok() && !absl::IsNotFound(removed)) metrics_.Failed(StateOperation::kRemove);
  return removed;
}

absl::StatusOr<std::vector<StoredState>> StateStore::List(const std::string& owner) {
  auto states = DoList(owner);
  if (!states.ok()) {
    metrics_.Failed(StateOperation::kList);
    return states;
  }
  std::sort(states->begin(), states->end(),
            [](const StoredState& a, const StoredState& b) { return a.handle < b.handle; });
  return states;
}

}  // namespace hippodrome
