// Runs the batches of a store.
#ifndef HIPPODROME_SERVER_BATCHES_BATCH_RUNNER_H_
#define HIPPODROME_SERVER_BATCHES_BATCH_RUNNER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/batches/batch.h"
#include "server/batches/batch_store.h"
#include "server/batches/bell.h"
#include "server/batches/running_batch.h"

namespace hippodrome {

// Of each owner the oldest batch runs, beside those of others; the rest wait for it. What cannot be
// read or written makes a batch pause, and try again. All happens on one thread.
class BatchRunner {
 public:
  // As of BatchSurroundings.
  struct Options {
    BatchStore& store;
    BatchMetrics& metrics;
    std::function<HttpReply(HttpRequest request)> answer;
    std::function<absl::StatusOr<std::shared_ptr<CallPermit>>(const std::string& key)> admit;
    int64_t most_calls = 1;
    int64_t most_line_bytes = 0;
  };
  // Begins at once, with what an earlier server left. What it is given must outlive it.
  explicit BatchRunner(const Options& options);
  ~BatchRunner() { Stop(); }
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  // Gives up what is being answered, which the next server answers anew, and puts on the disk what
  // was answered. Idempotent.
  void Stop();

 private:
  using Clock = RunningBatch::Clock;

  // A batch that is under way.
  struct Task {
    std::unique_ptr<RunningBatch> running;
    Clock::time_point paused_until;
    Clock::time_point synced;
  };

  void Run();
  const std::vector<Batch>& Unfinished();
  // These return whether anything moved.
  bool Turn();
  absl::StatusOr<bool> Advance(const Batch& batch, Task& task, bool may_run);
  absl::StatusOr<bool> RunOrFail(const Batch& batch, Task& task);
  absl::StatusOr<bool> RunLines(const Batch& batch, Task& task);
  absl::Status Validate(const Batch& batch);
  absl::Status Open(const Batch& batch, Task& task);
  absl::Status End(const Batch& batch, Task& task, BatchStatus outcome);
  // The batch comes to its end with this.
  absl::Status Decide(const Batch& batch, Task& task, BatchStatus outcome,
                      const std::vector<BatchError>& errors = {});
  absl::Status Publish(const Batch& batch);
  void Pause(const Batch& batch, Task& task, const absl::Status& why);

  BatchStore& store_;
  Bell bell_;
  const BatchSurroundings around_;
  std::vector<Batch> unfinished_;      // as of seen_
  int64_t seen_ = -1;                  // BatchStore::changes()
  std::map<std::string, Task> tasks_;  // by batch
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BATCH_RUNNER_H_
