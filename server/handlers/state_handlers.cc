#include "server/handlers/state_handlers.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/state/state_file.h"
#include "server/guarded.h"
#include "server/log/log.h"
#include "server/states/state_signature.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostForks = 128;
constexpr int kTooLarge = 413;
constexpr int kConflict = 409;

// A state of another model than the one that is asked is no mistake in the request.
absl::Status Refused(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? WithHttpStatus(status, kConflict) : status;
}

absl::Status CheckHandle(const std::string& handle) {
  if (IsStateHandle(handle)) return absl::OkStatus();
  return FieldError("handle", "expected 32 hexadecimal digits in lower case");
}

}  // namespace

absl::StatusOr<StateStore*> StateHandlers::Store() const {
  if (store_ == nullptr) return FailedPrecondition("this server keeps no states");
  return store_.get();
}

absl::StatusOr<std::function<void()>> StateHandlers::PrepareKey() {
  if (options_.key.empty()) return nullptr;
  HIPPODROME_ASSIGN_OR_RETURN(std::string key, ReadStateKey(options_.key));
  {
    std::lock_guard lock(key_mutex_);
    if (key == key_) return nullptr;
  }
  return [this, key = std::move(key)] {
    std::lock_guard lock(key_mutex_);
    signer_ = HmacSha256(key);
    key_ = key;
  };
}

StateSigner StateHandlers::signer() const {
  std::lock_guard lock(key_mutex_);
  return signer_;
}

// ---- Handles ------------------------------------------------------------------------------------

absl::StatusOr<v1::ListStatesResponse> StateHandlers::List(const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<StoredState> found, store->List(caller.key));
  v1::ListStatesResponse response;
  for (const StoredState& info : found) {
    v1::StoredState& state = *response.add_states();
    state.set_handle(info.handle);
    state.set_bytes(info.bytes);
    state.set_expires_at(info.expires_at);
  }
  return response;
}

absl::StatusOr<StateHandlers::File> StateHandlers::Get(const std::string& handle,
                                                       const Caller& caller) {
  HIPPODROME_RETURN_IF_ERROR(CheckHandle(handle));
  HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
  return store->Get(caller.key, handle);
}

absl::StatusOr<v1::State> StateHandlers::Put(const std::string& handle, std::string file,
                                             std::optional<int64_t> ttl, const Caller& caller) {
  HIPPODROME_RETURN_IF_ERROR(CheckImport());
  if (!handle.empty()) HIPPODROME_RETURN_IF_ERROR(CheckHandle(handle));
  HIPPODROME_ASSIGN_OR_RETURN(const std::chrono::seconds lives, Ttl(ttl));
  HIPPODROME_RETURN_IF_ERROR(CheckBytes(std::ssize(file)));
  std::string arithmetic;
  HIPPODROME_ASSIGN_OR_RETURN(const SavedState state, Read(file, caller, arithmetic));
  v1::State kept;
  kept.set_handle(handle);
  if (handle.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(*kept.mutable_handle(), NewStateHandle());
  }
  kept.set_position(state.position);
  kept.set_bytes(std::ssize(file));
  kept.set_exact(GoesOnExactly(state, arithmetic));
  HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
  HIPPODROME_ASSIGN_OR_RETURN(
      const StoredState stored,
      store->Put(caller.key, kept.handle(), std::make_shared<const std::string>(std::move(file)),
                 lives));
  kept.set_expires_at(stored.expires_at);
  return kept;
}

absl::Status StateHandlers::Delete(const std::string& handle, const Caller& caller) {
  HIPPODROME_RETURN_IF_ERROR(CheckHandle(handle));
  HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
  return store->Remove(caller.key, handle);
}

absl::StatusOr<v1::ForkStateResponse> StateHandlers::Fork(const v1::ForkStateRequest& request,
                                                          const Caller& caller) {
  const int64_t n = request.has_n() ? request.n() : 1;
  if (n < 1 || n > kMostForks) {
    return FieldError("n", fmt::format("{}, expected 1 to {}", n, kMostForks));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const File file, Get(request.handle(), caller));
  HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
  v1::ForkStateResponse response;
  for (int64_t i = 0; i < n; ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string handle, NewStateHandle());
    HIPPODROME_RETURN_IF_ERROR(store->Put(caller.key, handle, file, options_.max_ttl).status());
    response.add_handles(handle);
  }
  return response;
}

absl::Status StateHandlers::CheckImport() const {
  if (options_.import) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "this server takes no states of clients: --state-import is off");
}

absl::Status StateHandlers::CheckBytes(int64_t bytes) const {
  if (bytes <= options_.max_state_bytes) return absl::OkStatus();
  return WithHttpStatus(
      absl::OutOfRangeError(fmt::format("the state has {} bytes or more, expected at most {}",
                                        bytes, options_.max_state_bytes)),
      kTooLarge);
}

absl::StatusOr<std::chrono::seconds> StateHandlers::Ttl(std::optional<int64_t> ttl) const {
  if (!ttl) return options_.max_ttl;
  if (*ttl >= 1 && *ttl <= options_.max_ttl.count()) return std::chrono::seconds(*ttl);
  return FieldError("state_ttl",
                    fmt::format("{}, expected 1 to {}", *ttl, options_.max_ttl.count()));
}

// By the model that it is of.
absl::StatusOr<SavedState> StateHandlers::Read(const std::string& file, const Caller& caller,
                                               std::string& arithmetic) const {
  const StateSigner sign = signer();
  absl::Status refused = FailedPrecondition("no model is served that has states");
  for (const std::shared_ptr<ServedModel>& model : *models_.all()) {
    const ServedDecoder* decoder = model->decoder();
    if (decoder == nullptr || !caller.MayRun(model->info().name()).ok()) continue;
    absl::StatusOr<SavedState> state = ReadStateFile(file, decoder->state_layout(), {.sign = sign});
    if (!state.ok() && absl::IsFailedPrecondition(state.status())) {
      refused = state.status();
      continue;
    }
    arithmetic = decoder->arithmetic();
    return state;
  }
  return Refused(refused);
}

// ---- In requests --------------------------------------------------------------------------------

std::shared_ptr<const void> StateHandlers::TakeRoom(int64_t bytes) {
  const int64_t before = in_transit_->fetch_add(bytes);
  const auto give_back = [room = in_transit_, bytes](const void*) { room->fetch_sub(bytes); };
  std::shared_ptr<const void> taken(this, give_back);
  return before > 0 && before + bytes > options_.max_bytes_in_transit ? nullptr : taken;
}

absl::StatusOr<std::shared_ptr<const SavedState>> StateHandlers::Load(const std::string& state,
                                                                      const ServedDecoder& model,
                                                                      const Caller& caller) {
  struct Loaded {
    std::shared_ptr<const void> room;
    SavedState state;
  };
  const bool inline_file = !IsStateHandle(state);
  File stored;
  if (inline_file) {
    HIPPODROME_RETURN_IF_ERROR(CheckImport());
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(stored, Get(state, caller));
  }
  const std::string& file = inline_file ? state : *stored;
  HIPPODROME_RETURN_IF_ERROR(CheckBytes(std::ssize(file)));
  const auto loaded = std::make_shared<Loaded>();
  loaded->room = TakeRoom(std::ssize(file));
  if (loaded->room == nullptr) return ResourceExhausted("too many states are in use: try again");
  absl::StatusOr<SavedState> read = ReadStateFile(file, model.state_layout(), {.sign = signer()});
  if (!read.ok()) return Refused(read.status());
  loaded->state = *std::move(read);
  return std::shared_ptr<const SavedState>(loaded, &loaded->state);
}

absl::StatusOr<StateHandlers::Wanted> StateHandlers::WantedOf(const v1::GenerateRequest& request,
                                                              const ServedDecoder& model,
                                                              const SavedState* start,
                                                              const Caller& caller) const {
  Wanted wanted{.key = caller.key, .form = request.return_state()};
  if (!v1::ReturnState_IsValid(wanted.form)) {
    return FieldError("return_state", "expected NONE, HANDLE or INLINE");
  }
  if (request.has_state_ttl() && wanted.form != v1::RETURN_STATE_HANDLE) {
    return FieldError("state_ttl", "it needs a return_state that is a handle");
  }
  if (!v1::StateDtype_IsValid(request.state_dtype())) {
    return FieldError("state_dtype", "expected F32 or BF16");
  }
  wanted.lossy = request.state_dtype() == v1::STATE_DTYPE_BF16;
  if (wanted.lossy && wanted.form == v1::RETURN_STATE_NONE) {
    return FieldError("state_dtype", "it needs a return_state");
  }
  std::optional<int64_t> ttl;
  if (request.has_state_ttl()) ttl = request.state_ttl();
  HIPPODROME_ASSIGN_OR_RETURN(wanted.ttl, Ttl(ttl));
  wanted.layout = model.state_layout();
  wanted.exact = start == nullptr || GoesOnExactly(*start, model.arithmetic());
  return wanted;
}

absl::StatusOr<std::function<void(SavedState state, StateKept kept)>> StateHandlers::Keeper(
    const v1::GenerateRequest& request, const ServedDecoder& model, const SavedState* start,
    const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(Wanted wanted, WantedOf(request, model, start, caller));
  if (wanted.form == v1::RETURN_STATE_NONE) return nullptr;
  wanted.exact = wanted.exact && !wanted.lossy;
  return [this, wanted](SavedState state, StateKept kept) {
    const auto room = TakeRoom(BytesOf(state));
    const auto held = std::make_shared<const SavedState>(std::move(state));
    if (room == nullptr) return kept(std::make_shared<v1::State>(Describe(*held, wanted)));
    keeper_.Post([this, wanted, room, held, kept = std::move(kept)] {
      kept(std::make_shared<v1::State>(Keep(*held, wanted)));
    });
  };
}

std::function<bool(SavedState state, StateKept kept)> StateHandlers::Migrator(
    const v1::GenerateRequest& request, const ServedDecoder& model, const SavedState* start,
    const Caller& caller) {
  if (!shared()) return nullptr;
  Wanted wanted = *WantedOf(request, model, start, caller);
  wanted.form = v1::RETURN_STATE_HANDLE;
  wanted.lossy = false;  // the text is to be the same
  return [this, wanted = std::make_shared<const Wanted>(std::move(wanted))](SavedState state,
                                                                            StateKept kept) {
    const auto room = TakeRoom(BytesOf(state));
    if (room == nullptr) return false;
    const auto held = std::make_shared<const SavedState>(std::move(state));
    ++migrating_;
    keeper_.Post([this, wanted, room, held, kept = std::move(kept)]() mutable {
      v1::State saved = Keep(*held, *wanted);
      const bool lost = saved.handle().empty();
      ++(lost ? lost_ : migrated_);
      kept(lost ? nullptr : std::make_shared<v1::State>(std::move(saved)));
      kept = nullptr;  // with it the request is no longer pending
      --migrating_;
    });
    return true;
  };
}

v1::State StateHandlers::Describe(const SavedState& state, const Wanted& wanted) {
  v1::State described;
  described.set_position(state.position);
  described.set_bytes(BytesOf(state));
  described.set_exact(wanted.exact);
  return described;
}

// What goes wrong here costs a client its state, never its text.
v1::State StateHandlers::Keep(const SavedState& state, const Wanted& wanted) {
  v1::State kept = Describe(state, wanted);
  const absl::Status status = Guarded([&]() -> absl::Status {
    const StateFileOptions how{.lossy = wanted.lossy,
                               .sign = signer(),
                               .most_bytes = static_cast<size_t>(options_.max_state_bytes)};
    HIPPODROME_ASSIGN_OR_RETURN(std::string file, WriteStateFile(state, wanted.layout, how));
    kept.set_bytes(std::ssize(file));
    HIPPODROME_RETURN_IF_ERROR(CheckBytes(kept.bytes()));
    if (wanted.form == v1::RETURN_STATE_INLINE) {
      kept.set_data(std::move(file));
      return absl::OkStatus();
    }
    HIPPODROME_ASSIGN_OR_RETURN(const std::string handle, NewStateHandle());
    HIPPODROME_ASSIGN_OR_RETURN(StateStore * store, Store());
    HIPPODROME_ASSIGN_OR_RETURN(
        const StoredState stored,
        store->Put(wanted.key, handle, std::make_shared<const std::string>(std::move(file)),
                   wanted.ttl));
    kept.set_expires_at(stored.expires_at);
    kept.set_handle(handle);
    return absl::OkStatus();
  });
  if (!status.ok()) {
    Log(LogLine(LogLevel::kWarning, "state_not_kept").Text("message", Message(status)));
  }
  return kept;
}

}  // namespace hippodrome
