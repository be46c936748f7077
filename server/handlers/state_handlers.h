// Saved states: under handles, and on their way into and out of requests.
#ifndef HIPPODROME_SERVER_HANDLERS_STATE_HANDLERS_H_
#define HIPPODROME_SERVER_HANDLERS_STATE_HANDLERS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/state/saved_state.h"
#include "engine/state/state_file.h"
#include "hippodrome/v1/generation.pb.h"
#include "hippodrome/v1/states.pb.h"
#include "server/batching/caller.h"
#include "server/batching/running_sequence.h"
#include "server/handlers/model_list.h"
#include "server/handlers/served_model.h"
#include "server/options.h"
#include "server/serial_executor.h"
#include "server/states/state_store.h"

namespace hippodrome {

// What all but CheckImport() and CheckBytes() do may take a while: a store may be a disk, or
// another server. Handles belong to the caller's key: others do not find them. Errors are those of
// states.proto; where HTTP says more, with WithHttpStatus(). Thread-safe.
class StateHandlers {
 public:
  using File = StateBytes;

  // `models` must outlive it. Without a store no state is kept.
  StateHandlers(const ModelList& models, const StateOptions& options)
      : models_(models), options_(options) {}

  // Before the first call.
  void SetStore(std::unique_ptr<StateStore> store) { store_ = std::move(store); }

  // Reads the key by which states are signed, and known for this server's own. Returns what puts it
  // into force; null where nothing is new. Errors: those of ReadStateKey().
  absl::StatusOr<std::function<void()>> PrepareKey();

  const StateOptions& options() const { return options_; }
  // Whether other processes find what is kept here.
  bool shared() const { return store_ != nullptr && store_->shared(); }
  // Migrations under way; and so far those whose state was kept, and those whose could not be.
  int64_t migrating() const { return migrating_.load(); }
  int64_t migrated() const { return migrated_.load(); }
  int64_t lost() const { return lost_.load(); }

  absl::StatusOr<v1::ListStatesResponse> List(const Caller& caller);
  absl::StatusOr<File> Get(const std::string& handle, const Caller& caller);
  // Checks `file` against the model that it is of, and keeps it for `ttl` seconds; an empty handle
  // asks for a new one.
  absl::StatusOr<v1::State> Put(const std::string& handle, std::string file,
                                std::optional<int64_t> ttl, const Caller& caller);
  absl::Status Delete(const std::string& handle, const Caller& caller);
  absl::StatusOr<v1::ForkStateResponse> Fork(const v1::ForkStateRequest& request,
                                             const Caller& caller);

  // kPermissionDenied where files of clients are not taken.
  absl::Status CheckImport() const;
  // Whether a file may have so many bytes.
  absl::Status CheckBytes(int64_t bytes) const;

  // The state that GenerateRequest::state is, for `model`.
  absl::StatusOr<std::shared_ptr<const SavedState>> Load(const std::string& state,
                                                         const ServedDecoder& model,
                                                         const Caller& caller);
  // GenerationCall::keep_state of a request that was made of `start`, or of nothing (null); null
  // where it wants no state.
  absl::StatusOr<std::function<void(SavedState state, StateKept kept)>> Keeper(
      const v1::GenerateRequest& request, const ServedDecoder& model, const SavedState* start,
      const Caller& caller);
  // GenerationCall::migrate of the same: keeps a handle, and gives null where that fails. Null
  // where the store is not shared. REQUIRES: Keeper() was OK.
  std::function<bool(SavedState state, StateKept kept)> Migrator(const v1::GenerateRequest& request,
                                                                 const ServedDecoder& model,
                                                                 const SavedState* start,
                                                                 const Caller& caller);

 private:
  struct Wanted {
    std::string key;
    v1::ReturnState form = v1::RETURN_STATE_NONE;
    std::chrono::seconds ttl{};
    StateLayout layout;  // of the model, which may be gone by then
    bool lossy = false;
    bool exact = true;
  };
  // Of a state on its way, until the last copy is destroyed; null where there is none left.
  std::shared_ptr<const void> TakeRoom(int64_t bytes);
  absl::StatusOr<StateStore*> Store() const;
  StateSigner signer() const;
  absl::StatusOr<std::chrono::seconds> Ttl(std::optional<int64_t> ttl) const;
  absl::StatusOr<Wanted> WantedOf(const v1::GenerateRequest& request, const ServedDecoder& model,
                                  const SavedState* start, const Caller& caller) const;
  absl::StatusOr<SavedState> Read(const std::string& file, const Caller& caller,
                                  std::string& arithmetic) const;
  // Without what keeping it gives.
  static v1::State Describe(const SavedState& state, const Wanted& wanted);
  v1::State Keep(const SavedState& state, const Wanted& wanted);

  const ModelList& models_;
  std::unique_ptr<StateStore> store_;  // null: none
  const StateOptions options_;
  mutable std::mutex key_mutex_;
  std::string key_;     // guarded by key_mutex_
  StateSigner signer_;  // guarded by key_mutex_; null: there is no key
  const std::shared_ptr<std::atomic<int64_t>> in_transit_ =
      std::make_shared<std::atomic<int64_t>>(0);
  std::atomic<int64_t> migrating_ = 0, migrated_ = 0, lost_ = 0;
  SerialExecutor keeper_;  // goes first: what was posted uses the others
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_STATE_HANDLERS_H_
