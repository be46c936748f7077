// One call of an encoder between its client and the batcher's loop thread.
#ifndef HIPPODROME_SERVER_BATCHING_ENCODING_JOB_H_
#define HIPPODROME_SERVER_BATCHING_ENCODING_JOB_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/encoder.h"
#include "server/batching/caller.h"

namespace hippodrome {

// What a client asks for: one request, or many that are answered together.
struct EncodingCall {
  std::vector<EncoderRequest> requests;  // at least one; each passed EncoderEngine::Validate()
  Caller caller;
};

// Gathers the outputs of its requests, which may come from several engine batches, in any order.
// Ready once all are here, or at the first failure. Thread-safe.
class EncodingJob {
 public:
  using Clock = std::chrono::steady_clock;

  EncodingJob(EncodingCall call, Clock::time_point submitted);

  const std::vector<EncoderRequest>& requests() const { return call_.requests; }
  Api api() const { return call_.caller.api; }
  const Caller& caller() const { return call_.caller; }
  Clock::time_point submitted() const { return submitted_; }

  // Reader. `wake` is called once, when the job is ready, and at once if it is ready now. It must
  // be cheap and must not call OnReady(). When OnReady() returns, the previous `wake` does not run
  // and will not be called again.
  void OnReady(std::function<void()> wake);
  // The outputs in the order of the requests; nothing before the job is ready and after the first
  // time that it gave something.
  std::optional<absl::StatusOr<std::vector<EncoderOutput>>> Take();

  // Whether all outputs have come: then none of its requests waits.
  bool complete();

  // Writer. True when that was the last output. Does nothing once the job is ready.
  bool Deliver(size_t index, EncoderOutput output);
  // Ends the job. False, with nothing done, if it is ready.
  bool Fail(const absl::Status& reason);

 private:
  void Announce();

  const EncodingCall call_;
  const Clock::time_point submitted_;
  std::mutex mutex_;  // guards the next group
  std::vector<EncoderOutput> outputs_;
  size_t missing_;
  absl::Status status_;
  bool ready_ = false;
  bool taken_ = false;
  std::mutex wake_mutex_;  // guards wake_ and is held while it runs
  std::function<void()> wake_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ENCODING_JOB_H_
