// Continuous batching: many requests, one engine, one thread.
#ifndef HIPPODROME_SERVER_BATCHING_GENERATION_BATCHER_H_
#define HIPPODROME_SERVER_BATCHING_GENERATION_BATCHER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batching/admission.h"
#include "server/batching/running_sequence.h"
#include "server/batching/sequence_engine.h"
#include "server/batching/shared_room.h"
#include "server/batching/token_stream.h"
#include "server/metrics/metrics.h"
#include "server/options.h"

namespace hippodrome {

class Generation;

// Owns the loop thread, which alone touches the engine's state. Requests wait in a bounded queue,
// enter between two steps as AdmissionLine says, and leave when they finish, fail or are cancelled,
// when their client's deadline has passed (kDeadlineExceeded), or when they have waited for
// max_wait (kResourceExhausted), which those in the background do for as long as it takes; what
// they hold is free within one engine call. What the engine
// throws ends the requests that it was at work on with kInternal; when its device fails, all
// requests end so, new ones get kUnavailable and the heartbeat stops. Thread-safe.
class GenerationBatcher {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the loop. `engine`, `tokenizer` (null: no text) and `metrics` must outlive the batcher.
  GenerationBatcher(SequenceEngine& engine, const BpeTokenizer* tokenizer,
                    const BatcherOptions& options, ModelMetrics& metrics);
  // Ends what runs with kUnavailable. REQUIRES: no Generation of this batcher is left.
  ~GenerationBatcher();

  // Queues `call`. Errors, at once: those of SequenceEngine::Validate(), and of Caller::Reserve()
  // for what it may take; kResourceExhausted when
  // the queue or the room for log probabilities is full, or the client, or the background, has its
  // share of that (SharedRoom); kUnavailable after Close(). The Generation keeps `owner`, whoever
  // owns the batcher, to its end.
  absl::StatusOr<std::unique_ptr<Generation>> Submit(GenerationCall call,
                                                     std::shared_ptr<const void> owner = nullptr);

  // Refuses new requests from now on. Those that are here go on.
  void Close();
  // From now on, what waits is refused with kUnavailable, and what runs and can go on elsewhere
  // (GenerationCall::migrate) leaves between two of its tokens, with its state. REQUIRES: Close()
  // was called.
  void Migrate();
  // Ends all that waits or runs with `reason`.
  void Abort(const absl::Status& reason);
  // Requests that wait or run.
  int64_t pending() const { return pending_->load(std::memory_order_acquire); }
  // When the loop last came by; long ago means that the engine hangs.
  Clock::time_point heartbeat() const;
  // False once the model has computed a value that is not a number.
  bool sound() const { return sound_.load(std::memory_order_acquire); }

 private:
  friend class Generation;
  using Stream = std::shared_ptr<TokenStream>;
  struct Waiting {
    GenerationCall call;
    Stream stream;
    Clock::time_point submitted;
    Clock::time_point expires;  // when it has waited for too long, or nobody wants it any more
  };
  // What a running sequence holds.
  struct Held {
    Footprint footprint;
    Caller caller;
  };
  struct CancelledStream {
    Stream stream;
    Clock::time_point when;
  };
  using WaitingRequests = std::map<AdmissionLine::Ticket, Waiting>;
  using Running = std::unordered_map<SequenceId, std::unique_ptr<RunningSequence>>;

  void Cancel(const Stream& stream);
  Footprint Cost(const GenerationRequest& request) const;
  absl::Status CheckRoom(const GenerationCall& call) const;
  absl::Status CheckScoreRoom(const Caller& caller, int64_t bytes) const;
  void ForgetScores(const Caller& caller, int64_t bytes);

  // The loop thread.
  void Loop();
  absl::Status RunOnce();
  bool AwaitWork();
  void ApplyCommands();
  void DropCancelled(const std::vector<CancelledStream>& cancelled);
  // Whether it waited.
  bool DropWaiting(const Stream& stream);
  void Enter(Waiting request);
  void Leave(WaitingRequests::iterator request);
  void ReleaseShare(const Waiting& request);
  void ExpireWaiting();
  absl::Status Expired(const Waiting& request, Clock::time_point now) const;
  void ExpireRunning();
  void FailWaiting(const absl::Status& reason);
  void EndAll(const absl::Status& reason);
  void EndPhase(Phase phase, const absl::Status& reason);
  void FailAll(const absl::Status& reason);
  void AdmitWaiting();
  std::vector<Waiting> TakeAdmissible();
  // Errors: why it ends instead.
  absl::Status Admit(Waiting& waiting);
  void RunEngine();
  void Prefill(Clock::time_point until);
  void Step();
  void Deliver();
  void MigrateRunning();
  // Hands over the state of a sequence that has finished.
  void KeepState(Running::iterator it);
  // Something that is pending while it lives.
  std::shared_ptr<const void> StillPending();
  void Remove(Running::iterator it);
  void Publish();

  SequenceEngine& engine_;
  const BpeTokenizer* const tokenizer_;
  const BatcherOptions options_;
  ModelMetrics& metrics_;
  const int64_t slot_bytes_;

  std::mutex mutex_;  // guards the next group
  std::condition_variable wake_;
  AdmissionLine line_;
  WaitingRequests waiting_;    // those in the line
  SharedRoom places_;          // of waiting_, by requests
  SharedRoom prompts_;         // and by tokens
  SharedRoom scores_;          // of all requests that are here, by bytes of log probabilities
  bool line_changed_ = false;  // since the loop last looked who may start
  Clock::time_point next_expiry_ = Clock::time_point::max();  // of those that wait, or earlier
  std::vector<CancelledStream> cancelled_;
  std::optional<absl::Status> abort_;
  bool closed_ = false;
  bool migrate_ = false;
  std::string closed_reason_ = "the server is stopping";
  bool stopping_ = false;

  // Shared with those whose state is being kept.
  const std::shared_ptr<std::atomic<int64_t>> pending_ = std::make_shared<std::atomic<int64_t>>(0);
  std::atomic<Clock::rep> heartbeat_;
  std::atomic<bool> sound_ = true;

  // Of the loop thread.
  bool migrating_ = false;
  Running running_;
  std::unordered_map<SequenceId, Held> held_;  // by those that run
  bool room_changed_ = false;                  // since the loop last looked who may start
  Clock::time_point last_look_;
  Clock::time_point next_deadline_ = Clock::time_point::max();  // of those that run, or earlier
  std::vector<TokenEvent> events_;
  Clock::time_point last_step_;

  std::thread thread_;
};

// A request in a batcher. Destroying it gives up the work, if there is any left, and the room for
// its log probabilities: whoever asked for some keeps it until they have gone.
class Generation {
 public:
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // As in TokenStream. `wake` runs on the batcher's loop thread.
  void OnUpdate(std::function<void()> wake, int64_t tokens = 1) {
    stream_->OnUpdate(std::move(wake), tokens);
  }
  std::optional<StreamUpdate> Take() { return stream_->Take(); }

 private:
  friend class GenerationBatcher;
  Generation(GenerationBatcher& batcher, std::shared_ptr<const void> owner,
             std::shared_ptr<TokenStream> stream, Caller caller, int64_t score_bytes)
      : owner_(std::move(owner)),
        batcher_(batcher),
        stream_(std::move(stream)),
        caller_(std::move(caller)),
        score_bytes_(score_bytes) {}

  const std::shared_ptr<const void> owner_;
  GenerationBatcher& batcher_;
  std::shared_ptr<TokenStream> stream_;
  const Caller caller_;
  const int64_t score_bytes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_GENERATION_BATCHER_H_
