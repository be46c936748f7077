// Dynamic batching: many inputs, one encoder, one thread.
#ifndef HIPPODROME_SERVER_BATCHING_ENCODING_BATCHER_H_
#define HIPPODROME_SERVER_BATCHING_ENCODING_BATCHER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batching/class_queue.h"
#include "server/batching/encoder_engine.h"
#include "server/batching/encoding_job.h"
#include "server/batching/scheduling.h"
#include "server/batching/shared_room.h"
#include "server/metrics/encoder_metrics.h"
#include "server/options.h"

namespace hippodrome {

class Encoding;

// Owns the loop thread, which alone runs the encoder. Requests wait in a bounded queue that is fair
// to clients and to the calls of a client, by tokens (ClassQueue): a call of one request waits for
// a few batches at most, however many requests other calls have. Batches are those of
// ChooseBatch(); the requests of one call may run in several. A call ends when its client's
// deadline has passed (kDeadlineExceeded), or one of its requests has waited for max_wait
// (kResourceExhausted). Those of a cancelled call leave the queue at once; what runs is not
// interrupted. A call for which the engine throws ends with kInternal; when its device fails, all
// calls do, new ones get kUnavailable and the heartbeat stops.
//
// Requests in the background are behind all others: they fill what these leave of their batches,
// and run by themselves when nobody else waits. So others wait for the one batch of the background
// that may be running when they come, and starve the background, which waits for as long as it
// takes. Thread-safe.
class EncodingBatcher {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the loop. `engine` and `metrics` must outlive the batcher.
  EncodingBatcher(EncoderEngine& engine, const EncodingOptions& options, EncoderMetrics& metrics);
  // Ends what waits with kUnavailable. REQUIRES: no Encoding of this batcher is left.
  ~EncodingBatcher();

  // Whether the queue can ever hold a call of so many requests with so many tokens together,
  // padding included. Errors: kOutOfRange with the numbers.
  absl::Status CheckSize(int64_t requests, int64_t tokens) const;
  // Queues `call`, all or nothing. Errors, at once: as above; those of Caller::Reserve() for what
  // it takes; kResourceExhausted when there is no room for it, or for its outputs, now, or the
  // client, or the background, has its share (SharedRoom) of that; kUnavailable after Close(). The
  // Encoding keeps `owner`, whoever owns the batcher, to its end.
  absl::StatusOr<std::unique_ptr<Encoding>> Submit(EncodingCall call,
                                                   std::shared_ptr<const void> owner = nullptr);

  // Refuses new calls from now on. Those that are here go on.
  void Close();
  // Ends all that waits or runs with `reason`.
  void Abort(const absl::Status& reason);
  // Requests that wait or run.
  int64_t pending() const { return pending_.load(std::memory_order_acquire); }
  // When the loop last came by; much longer ago than a batch takes means that the engine hangs.
  Clock::time_point heartbeat() const;

 private:
  friend class Encoding;
  using Job = std::shared_ptr<EncodingJob>;
  struct Waiting {
    Job job;
    size_t index = 0;  // of the request in its job
    QueuedInput input;
    Clock::time_point expires;  // when it has waited for too long, or nobody wants it any more
    bool background = false;    // its caller's
  };
  using Queue = ClassQueue<Waiting>;

  // What a call takes of the bounded room.
  struct Size {
    int64_t requests = 0;
    int64_t tokens = 0;  // padding included
    int64_t output_bytes = 0;
  };

  Size Measure(const std::vector<EncoderRequest>& requests) const;
  absl::Status CheckRoom(const Caller& caller, const Size& size) const;
  void Enter(const Job& job, const Size& size, Clock::time_point expires);
  void Remove(const Encoding& encoding);
  void Publish();

  // The loop thread.
  void Loop();
  bool NextBatch();
  bool TakeBatch(Clock::time_point now, Clock::time_point& until);
  std::vector<Waiting> TakeExpired(Clock::time_point now);
  void Expire(const Waiting& request, Clock::time_point now);
  void Leave(const std::vector<Waiting>& requests);
  void ReleaseShare(const Waiting& request);
  absl::Status RunBatch();
  std::vector<absl::StatusOr<EncoderOutput>> RunEngine(
      std::span<const EncoderRequest* const> requests);
  void Count(Clock::time_point start, Clock::time_point end);
  void Deliver(std::vector<absl::StatusOr<EncoderOutput>> outputs, Clock::time_point now);
  void Retire();
  void FailRunning(const absl::Status& reason);
  void FailAll(const absl::Status& reason);

  EncoderEngine& engine_;
  const EncodingOptions options_;
  const EncodingPolicy policy_;
  EncoderMetrics& metrics_;

  std::mutex mutex_;  // guards the next group
  std::condition_variable wake_;
  Queue waiting_;
  SharedRoom places_;   // of waiting_, by inputs
  SharedRoom tokens_;   // and by tokens as padded
  SharedRoom outputs_;  // by bytes, of all calls that are here
  Clock::time_point next_expiry_ = Clock::time_point::max();  // of those that wait, or earlier
  std::vector<Waiting> running_;                              // changed by the loop thread alone
  bool closed_ = false;
  std::string closed_reason_ = "the server is stopping";
  bool stopping_ = false;

  std::atomic<int64_t> pending_ = 0;
  std::atomic<Clock::rep> heartbeat_;

  std::thread thread_;
};

// A call in a batcher. Destroying it gives up the work, if there is any left.
class Encoding {
 public:
  ~Encoding();
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  // As in EncodingJob.
  void OnReady(std::function<void()> wake) { job_->OnReady(std::move(wake)); }
  std::optional<absl::StatusOr<std::vector<EncoderOutput>>> Take() { return job_->Take(); }

 private:
  friend class EncodingBatcher;
  Encoding(EncodingBatcher& batcher, std::shared_ptr<const void> owner,
           std::shared_ptr<EncodingJob> job, int64_t output_bytes)
      : owner_(std::move(owner)),
        batcher_(batcher),
        job_(std::move(job)),
        output_bytes_(output_bytes) {}

  const std::shared_ptr<const void> owner_;
  EncodingBatcher& batcher_;
  const std::shared_ptr<EncodingJob> job_;
  const int64_t output_bytes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ENCODING_BATCHER_H_
