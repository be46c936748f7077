#include "server/batching/generation_batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"
#include "kernels/device_error.h"
#include "server/guarded.h"
#include "server/log/log.h"

namespace hippodrome {
namespace {

// Commands and the heartbeat are looked at about this often.
constexpr std::chrono::milliseconds kTurn{50};
constexpr std::chrono::milliseconds kIdleTurn{500};

// A long request has more pages than a short one, and the same slot.
int64_t SlotBytes(const SequenceEngine& engine) {
  const Footprint small = engine.Cost(1, 1);
  const Footprint large = engine.Cost(100000, 1);
  const int64_t pages = large.pages - small.pages;
  if (pages == 0) return small.bytes;
  return small.bytes - small.pages * ((large.bytes - small.bytes) / pages);
}

// What a token with its log probability takes until the client has it, and each alternative, as
// measured with JSON.
constexpr int64_t kScoreBytes = 800;
constexpr int64_t kAlternativeBytes = 240;

int64_t ScoreBytes(const GenerationCall& call) {
  return call.scored_tokens() *
         (kScoreBytes + kAlternativeBytes * call.request.likeliest.value_or(0));
}

// What SequenceEngine::Remaining() begins with, or more.
int64_t Ticks(const GenerationRequest& request) {
  const int64_t last_token = request.start ? 1 : 0;
  return last_token + std::ssize(request.prompt) + request.max_tokens;
}

std::string SecondsText(std::chrono::duration<double> time) {
  return fmt::format("{:.1f}", time.count());
}

}  // namespace

GenerationBatcher::GenerationBatcher(SequenceEngine& engine, const BpeTokenizer* tokenizer,
                                     const BatcherOptions& options, ModelMetrics& metrics)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(options),
      metrics_(metrics),
      slot_bytes_(SlotBytes(engine)),
      line_(engine.capacity(), options.max_client_share),
      places_(options.max_queue, options.max_client_share),
      prompts_(options.max_queued_tokens, options.max_client_share),
      scores_(options.max_score_bytes, options.max_client_share),
      heartbeat_(Clock::now().time_since_epoch().count()),
      last_step_(Clock::now()),
      thread_([this] { Loop(); }) {}

GenerationBatcher::~GenerationBatcher() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

GenerationBatcher::Clock::time_point GenerationBatcher::heartbeat() const {
  return Clock::time_point(Clock::duration(heartbeat_.load(std::memory_order_acquire)));
}

// ---- Commands, on any thread --------------------------------------------------------------------

absl::Status GenerationBatcher::CheckScoreRoom(const Caller& caller, int64_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  const bool full = scores_.Full(bytes);
  if (!full && !scores_.Exceeds(caller, bytes)) return absl::OkStatus();
  metrics_.Rejected(RefusalOf(caller, full).reason);
  return ResourceExhausted((full ? "too many log probabilities wait for their clients: "
                                 : "too many log probabilities wait for the client: ") +
                           std::to_string(scores_.held()) + " bytes are taken");
}

absl::Status GenerationBatcher::CheckRoom(const GenerationCall& call) const {
  if (closed_) {
    metrics_.Rejected("stopping");
    return Unavailable(closed_reason_);
  }
  const auto tokens = static_cast<int64_t>(call.request.prompt.size());
  HIPPODROME_RETURN_IF_ERROR(CheckScoreRoom(call.caller, ScoreBytes(call)));
  const bool full = places_.Full(1) || prompts_.Full(tokens);
  if (!full && !places_.Exceeds(call.caller, 1) && !prompts_.Exceeds(call.caller, tokens)) {
    return absl::OkStatus();
  }
  const QueueRefusal refusal = RefusalOf(call.caller, full);
  metrics_.Rejected(refusal.reason);
  return ResourceExhausted(fmt::format("{}: {} requests with {} prompt tokens wait", refusal.text,
                                       places_.held(), prompts_.held()));
}

Footprint GenerationBatcher::Cost(const GenerationRequest& request) const {
  return engine_.Cost(TokensBefore(request), request.max_tokens);
}

// All of it, or nothing where there is no memory. REQUIRES: mutex_ is held.
void GenerationBatcher::Enter(Waiting request) {
  const Caller caller = request.call.caller;
  const GenerationRequest& wanted = request.call.request;
  const auto tokens = static_cast<int64_t>(wanted.prompt.size());
  const auto ticket = line_.Add(caller, Cost(wanted), Ticks(wanted), request.submitted);
  absl::Cleanup leave_line = [&] { line_.Remove(ticket); };
  places_.Add(caller, 1);
  absl::Cleanup leave_place = [&] { places_.Remove(caller, 1); };
  prompts_.Add(caller, tokens);
  absl::Cleanup forget_prompt = [&] { prompts_.Remove(caller, tokens); };
  waiting_.emplace(ticket, std::move(request));
  std::move(leave_line).Cancel();
  std::move(leave_place).Cancel();
  std::move(forget_prompt).Cancel();
}

absl::StatusOr<std::unique_ptr<Generation>> GenerationBatcher::Submit(
    GenerationCall call, std::shared_ptr<const void> owner) {
  if (absl::Status status = engine_.Validate(call.request); !status.ok()) {
    if (status.code() == absl::StatusCode::kOutOfRange) metrics_.Rejected("never_fits");
    return status;
  }
  const int64_t taken_in = TokensBefore(call.request) - call.held_tokens();
  HIPPODROME_RETURN_IF_ERROR(
      call.caller.Reserve(taken_in + call.request.max_tokens, Cost(call.request).bytes));
  const Clock::time_point now = Clock::now();
  const Clock::time_point expires = call.caller.WaitsUntil(now, options_.max_wait);
  auto stream = std::make_shared<TokenStream>(options_.max_unread_tokens);
  const Caller caller = call.caller;
  const int64_t score_bytes = ScoreBytes(call);
  {
    std::lock_guard lock(mutex_);
    HIPPODROME_RETURN_IF_ERROR(CheckRoom(call));
    scores_.Add(caller, score_bytes);
    absl::Cleanup forget_scores = [&] { scores_.Remove(caller, score_bytes); };
    Enter({std::move(call), stream, now, expires});
    std::move(forget_scores).Cancel();
    metrics_.SetScoreBytes(scores_.held());
    next_expiry_ = std::min(next_expiry_, expires);
    line_changed_ = true;
    pending_->fetch_add(1, std::memory_order_acq_rel);
  }
  wake_.notify_one();
  return std::unique_ptr<Generation>(
      new Generation(*this, std::move(owner), std::move(stream), caller, score_bytes));
}

void GenerationBatcher::ForgetScores(const Caller& caller, int64_t bytes) {
  std::lock_guard lock(mutex_);
  scores_.Remove(caller, bytes);
  metrics_.SetScoreBytes(scores_.held());
}

void GenerationBatcher::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

void GenerationBatcher::Migrate() {
  {
    std::lock_guard lock(mutex_);
    migrate_ = true;
  }
  wake_.notify_one();
}

void GenerationBatcher::Abort(const absl::Status& reason) {
  {
    std::lock_guard lock(mutex_);
    abort_ = reason;
  }
  wake_.notify_one();
}

void GenerationBatcher::Cancel(const Stream& stream) {
  if (stream->ended()) return;
  {
    std::lock_guard lock(mutex_);
    cancelled_.push_back({stream, Clock::now()});
  }
  wake_.notify_one();
}

// ---- The loop -----------------------------------------------------------------------------------

void GenerationBatcher::Loop() {
  Publish();
  try {
    while (AwaitWork()) {
      const absl::Status status = Guarded([this] { return RunOnce(); });
      if (!status.ok()) EndAll(status);
      Publish();
    }
  } catch (const DeviceError& error) {
    FailAll(Internal(error.what()));
    Log(LogLine(LogLevel::kError, "device_failed").Text("message", error.what()));
    return;  // and with the loop the heartbeat stops
  }
  EndAll(Unavailable("the server has stopped"));
  Publish();
}

absl::Status GenerationBatcher::RunOnce() {
  ApplyCommands();
  ExpireRunning();
  AdmitWaiting();
  ExpireWaiting();
  RunEngine();
  return absl::OkStatus();
}

// False when the loop must end.
bool GenerationBatcher::AwaitWork() {
  heartbeat_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, kIdleTurn, [this] {
    return stopping_ || abort_ || !cancelled_.empty() || !waiting_.empty() || !running_.empty();
  });
  return !stopping_;
}

void GenerationBatcher::ApplyCommands() {
  std::vector<CancelledStream> cancelled;
  std::optional<absl::Status> abort;
  {
    std::lock_guard lock(mutex_);
    cancelled.swap(cancelled_);
    abort.swap(abort_);
    migrating_ = migrate_;
  }
  DropCancelled(cancelled);
  if (abort) EndAll(*abort);
  if (migrating_) {
    FailWaiting(Unavailable("the server is stopping"));
    MigrateRunning();
  }
}

// As many as there is room for: the others go on until there is.
void GenerationBatcher::MigrateRunning() {
  for (auto it = running_.begin(); it != running_.end();) {
    const auto sequence = it++;
    if (!sequence->second->may_migrate()) continue;
    const absl::StatusOr<bool> left = Guarded([&]() -> absl::StatusOr<bool> {
      HIPPODROME_ASSIGN_OR_RETURN(SavedState state, engine_.Save(sequence->first));
      return sequence->second->Migrate(std::move(state), StillPending());
    });
    if (!left.ok()) continue;  // not between two parts of its prompt
    if (!*left) return;
    metrics_.Migrated();
    Remove(sequence);
  }
}

void GenerationBatcher::DropCancelled(const std::vector<CancelledStream>& cancelled) {
  for (const auto& [stream, when] : cancelled) {
    const auto it = std::find_if(running_.begin(), running_.end(), [&](const auto& entry) {
      return &entry.second->stream() == stream.get();
    });
    if (it != running_.end()) {
      metrics_.Cancelled(it->second->phase());
      Remove(it);
      metrics_.Freed(Clock::now() - when);
    } else if (DropWaiting(stream)) {
      metrics_.Freed(Clock::now() - when);
    }
  }
}

bool GenerationBatcher::DropWaiting(const Stream& stream) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& w) { return w.second.stream == stream; });
  if (found == waiting_.end()) return false;
  metrics_.Cancelled(Phase::kQueue);
  Leave(found);
  pending_->fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

// REQUIRES: mutex_ is held.
void GenerationBatcher::Leave(WaitingRequests::iterator request) {
  line_.Remove(request->first);
  line_changed_ = true;
  ReleaseShare(request->second);
  waiting_.erase(request);
}

// REQUIRES: mutex_ is held.
void GenerationBatcher::ReleaseShare(const Waiting& request) {
  const Caller& caller = request.call.caller;
  places_.Remove(caller, 1);
  prompts_.Remove(caller, static_cast<int64_t>(request.call.request.prompt.size()));
}

// After those were admitted for whom there is room.
void GenerationBatcher::ExpireWaiting() {
  const Clock::time_point now = Clock::now();
  std::vector<std::pair<Stream, absl::Status>> expired;
  {
    std::lock_guard lock(mutex_);
    if (now < next_expiry_) return;
    next_expiry_ = Clock::time_point::max();
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const auto request = it++;
      if (request->second.expires > now) {
        next_expiry_ = std::min(next_expiry_, request->second.expires);
        continue;
      }
      expired.emplace_back(request->second.stream, Expired(request->second, now));
      Leave(request);
    }
  }
  for (const auto& [stream, status] : expired) {
    stream->Fail(status);
    pending_->fetch_sub(1, std::memory_order_acq_rel);
  }
}

// Why a request ends that has waited for too long.
absl::Status GenerationBatcher::Expired(const Waiting& request, Clock::time_point now) const {
  const std::string waited = "after " + SecondsText(now - request.submitted) + " s in the queue";
  if (request.call.caller.deadline <= now) {
    metrics_.Rejected("deadline");
    return absl::DeadlineExceededError("the client's deadline has passed " + waited);
  }
  metrics_.Rejected("max_wait");
  return ResourceExhausted("the server is too busy: there was no room " + waited);
}

void GenerationBatcher::ExpireRunning() {
  const Clock::time_point now = Clock::now();
  if (now < next_deadline_) return;
  next_deadline_ = Clock::time_point::max();
  for (auto it = running_.begin(); it != running_.end();) {
    const auto sequence = it++;
    const Clock::time_point deadline = held_.at(sequence->first).caller.deadline;
    if (deadline > now) {
      next_deadline_ = std::min(next_deadline_, deadline);
      continue;
    }
    sequence->second->stream().Fail(absl::DeadlineExceededError(
        "the client's deadline has passed before the text was complete"));
    Remove(sequence);
  }
}

void GenerationBatcher::FailWaiting(const absl::Status& reason) {
  WaitingRequests failed;
  {
    std::lock_guard lock(mutex_);
    failed.swap(waiting_);
    for (const auto& [ticket, request] : failed) {
      line_.Remove(ticket);
      ReleaseShare(request);
    }
  }
  for (const auto& [ticket, request] : failed) {
    request.stream->Fail(reason);
    pending_->fetch_sub(1, std::memory_order_acq_rel);
  }
}

void GenerationBatcher::EndAll(const absl::Status& reason) {
  FailWaiting(reason);
  while (!running_.empty()) {
    running_.begin()->second->stream().Fail(reason);
    Remove(running_.begin());
  }
}

// Ends those that the engine was at work on when something went wrong.
void GenerationBatcher::EndPhase(Phase phase, const absl::Status& reason) {
  events_.clear();
  for (auto it = running_.begin(); it != running_.end();) {
    const auto next = std::next(it);
    if (it->second->phase() == phase) {
      it->second->stream().Fail(reason);
      Remove(it);
    }
    it = next;
  }
}

// The engine is lost: it is not told who leaves.
void GenerationBatcher::FailAll(const absl::Status& reason) {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    closed_reason_ = "the model has failed: " + Message(reason);
  }
  FailWaiting(reason);
  for (const auto& [id, sequence] : running_) {
    sequence->stream().Fail(reason);
    pending_->fetch_sub(1, std::memory_order_acq_rel);
  }
  running_.clear();
  held_.clear();
  metrics_.SetLoad({}, 0, 0);
  metrics_.SetState({}, {}, slot_bytes_);  // there is room for nothing
}

std::vector<GenerationBatcher::Waiting> GenerationBatcher::TakeAdmissible() {
  std::vector<Waiting> admissible;
  const Footprint free = Free(engine_.capacity(), engine_.used());
  const Clock::time_point now = Clock::now();
  std::lock_guard lock(mutex_);
  // Nobody can start who could not before, but for a client that is alone since.
  const bool changed = line_changed_ || room_changed_ || now - last_look_ >= kTurn;
  if (waiting_.empty() || free.slots == 0 || !changed) return admissible;
  line_changed_ = room_changed_ = false;
  last_look_ = now;
  std::vector<Claim> running;
  running.reserve(held_.size());
  for (const auto& [id, held] : held_) {
    running.push_back(
        {held.footprint, engine_.Remaining(id), held.caller.client, held.caller.background});
  }
  // Once they have left the line, memory must not run out.
  admissible.reserve(waiting_.size());
  for (const AdmissionLine::Ticket ticket : line_.Take(running, free, now)) {
    const auto request = waiting_.find(ticket);
    ReleaseShare(request->second);
    admissible.push_back(std::move(request->second));
    waiting_.erase(request);
  }
  return admissible;
}

void GenerationBatcher::AdmitWaiting() {
  std::vector<Waiting> admissible = TakeAdmissible();
  auto next = admissible.begin();
  const auto refuse = [&](const absl::Status& reason) {
    (next++)->stream->Fail(reason);
    room_changed_ = true;
    pending_->fetch_sub(1, std::memory_order_acq_rel);
  };
  const absl::Cleanup lost = [&] {  // with the device
    while (next != admissible.end()) refuse(Internal("the model has failed"));
  };
  while (next != admissible.end()) {
    const absl::Status status = Guarded([&] { return Admit(*next); });
    status.ok() ? void(++next) : refuse(status);
  }
}

absl::Status GenerationBatcher::Admit(Waiting& waiting) {
  const Clock::time_point now = Clock::now();
  if (waiting.call.caller.deadline <= now) return Expired(waiting, now);
  GenerationCall& call = waiting.call;
  const RunningSequence::Context context{TokensBefore(call.request), call.held_tokens(),
                                         PendingText(call.request)};
  Held held{Cost(call.request), call.caller};
  absl::StatusOr<SequenceId> id = Guarded([&] { return engine_.Admit(std::move(call.request)); });
  if (!id.ok()) return Internal("admission failed: " + Message(id.status()));
  absl::Cleanup leave = [&] {  // where memory runs out
    held_.erase(*id);
    engine_.Release(*id);
  };
  next_deadline_ = std::min(next_deadline_, held.caller.deadline);
  held_.emplace(*id, std::move(held));
  metrics_.Admitted(call.caller.api, call.caller.Waited(waiting.submitted, now),
                    context.tokens - context.held);
  running_.emplace(*id, std::make_unique<RunningSequence>(tokenizer_, std::move(call), context,
                                                          waiting.submitted, waiting.stream));
  std::move(leave).Cancel();
  return absl::OkStatus();
}

// A slice of prefill, then a step for those that decode, once they have waited for max_stall or
// nothing is left to prefill. Those that migrate do so between two parts of their prompts, so that
// slices are as short as can be then.
void GenerationBatcher::RunEngine() {
  if (engine_.prefilling()) {
    Clock::time_point until = Clock::now();
    if (!migrating_) until += kTurn;
    if (engine_.decoding() > 0) until = std::min(until, last_step_ + options_.max_stall);
    Prefill(until);
  }
  if (engine_.decoding() == 0) return;
  if (!engine_.prefilling() || Clock::now() >= last_step_ + options_.max_stall) Step();
}

void GenerationBatcher::Prefill(Clock::time_point until) {
  const bool alone = engine_.decoding() == 0;
  const Clock::time_point start = Clock::now();
  const absl::Status status = Guarded([&] {
    engine_.Prefill(until, events_);
    return absl::OkStatus();
  });
  const int64_t stepped = engine_.stepped();
  metrics_.EngineStep(Phase::kPrefill, Clock::now() - start, stepped);
  // Streams that start now have not been waiting for a step.
  if (alone || stepped > 0) last_step_ = Clock::now();
  if (status.ok()) return Deliver();
  EndPhase(Phase::kPrefill, status);
  if (stepped > 0) EndPhase(Phase::kDecode, status);
}

// Tokens that are ready cost nothing: giving them is no step.
void GenerationBatcher::Step() {
  const bool computes = engine_.ready() == 0;
  const int64_t sequences = engine_.decoding();
  const Clock::time_point start = Clock::now();
  const absl::Status status = Guarded([&] {
    engine_.Step(events_);
    return absl::OkStatus();
  });
  last_step_ = Clock::now();
  if (computes) metrics_.EngineStep(Phase::kDecode, last_step_ - start, sequences);
  status.ok() ? Deliver() : EndPhase(Phase::kDecode, status);
}

void GenerationBatcher::Deliver() {
  const Clock::time_point now = Clock::now();
  for (TokenEvent& event : events_) {
    if (event.finish == FinishReason::kFailed) sound_.store(false, std::memory_order_release);
    const auto it = running_.find(event.sequence);
    if (it == running_.end()) continue;
    const absl::StatusOr<bool> goes_on = Guarded([&]() -> absl::StatusOr<bool> {
      if (it->second->phase() == Phase::kPrefill) it->second->set_cached(engine_.Cached(it->first));
      return it->second->OnToken(std::move(event), now, metrics_);
    });
    if (!goes_on.ok()) it->second->stream().Fail(goes_on.status());
    if (goes_on.value_or(false)) continue;
    if (goes_on.ok() && it->second->wants_state()) KeepState(it);
    Remove(it);
  }
  events_.clear();
}

void GenerationBatcher::KeepState(Running::iterator it) {
  const absl::Status status = Guarded([&]() -> absl::Status {
    HIPPODROME_ASSIGN_OR_RETURN(SavedState state, engine_.Save(it->first));
    it->second->KeepState(std::move(state), StillPending());
    return absl::OkStatus();
  });
  if (!status.ok()) it->second->stream().Fail(status);
}

// A request whose state is being kept is here until its client can have the last token.
std::shared_ptr<const void> GenerationBatcher::StillPending() {
  pending_->fetch_add(1, std::memory_order_acq_rel);
  const auto leave = [pending = pending_](const void*) {
    pending->fetch_sub(1, std::memory_order_acq_rel);
  };
  return {this, leave};
}

void GenerationBatcher::Remove(Running::iterator it) {
  engine_.Release(it->first);
  held_.erase(it->first);
  room_changed_ = true;
  running_.erase(it);
  pending_->fetch_sub(1, std::memory_order_acq_rel);
}

void GenerationBatcher::Publish() {
  QueuedRequests queued;
  {
    std::lock_guard lock(mutex_);
    queued.background = static_cast<int64_t>(line_.background());
    queued.interactive = static_cast<int64_t>(line_.size()) - queued.background;
  }
  const auto running = static_cast<int64_t>(running_.size());
  const int64_t decoding = engine_.decoding();
  metrics_.SetLoad(queued, running - decoding, decoding);
  metrics_.SetState(engine_.used(), engine_.capacity(), slot_bytes_);
  metrics_.SetPrefixes(engine_.prefixes());
  metrics_.SetDrafts(engine_.drafts());
}

// ---- Generation ---------------------------------------------------------------------------------

Generation::~Generation() {
  stream_->OnUpdate(nullptr);
  batcher_.Cancel(stream_);
  if (score_bytes_ > 0) batcher_.ForgetScores(caller_, score_bytes_);
}

}  // namespace hippodrome
