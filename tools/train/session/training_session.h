// A training run from its first step, or the last checkpoint, to its end.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_SESSION_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_SESSION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/stop_signal.h"
#include "tools/mpi/communicator.h"
#include "tools/train/checkpoint/saved_model.h"
#include "tools/train/checkpoint/training_state.h"
#include "tools/train/run/run_data.h"
#include "tools/train/run/run_file.h"
#include "tools/train/session/metrics_log.h"
#include "tools/train/session/replicas.h"

namespace hippodrome {

// How training gets on, for who watches.
struct TrainingPace {
  double loss = 0;
  double tokens_per_second = 0;
  double fraction_of_limit = 0;  // 0: unknown
};

// How long the rest of `steps` steps takes if each takes as long as those after `first`, the last
// of them `done`, which took `seconds` together; < 0, unknown, before the first of them.
double SecondsLeft(int64_t first, int64_t done, int64_t steps, double seconds);

// "loss 3.142, 12.3 k tokens/s, 45 % of the limit, 1:02:03 left". seconds_left < 0: unknown.
std::string DescribePace(const TrainingPace& pace, double seconds_left);

// A bar or lines on stderr, see tools/command_line/progress.h. Not thread-safe.
class TrainingProgress {
 public:
  // Of a run of `steps` steps that goes on after step `first`.
  TrainingProgress(int64_t first, int64_t steps);

  // After step `done`.
  void Update(int64_t done, const TrainingPace& pace);

 private:
  using Clock = std::chrono::steady_clock;

  int64_t first_;
  int64_t steps_;
  Clock::time_point start_;
  Progress progress_;
};

// Everything of a run. Not thread-safe. With ranks all processes make the same calls, and come to
// the same results and errors; rank 0 alone reads and writes the output folder and tells how
// training gets on.
class TrainingSession {
 public:
  // Reads data and model; with `resume` goes on from the newest checkpoint, if there is one, with
  // the same bits as if it had not stopped. `ranks`: null for one process, and must outlive it.
  // Errors: of reading; kFailedPrecondition for an output that has checkpoints without `resume`, or
  // of another run file with it, and for ranks that do not have the same run file or data.
  static absl::StatusOr<std::unique_ptr<TrainingSession>> Open(const TrainingRun& run, bool resume,
                                                               Communicator* ranks = nullptr);

  // Trains until the end, which early stopping may bring sooner, or a signal to stop, after which
  // it has written a checkpoint; at the end it saves the model and the loss curve. Returns whether
  // the end was reached. Errors: of writing; kAborted when the loss is not a finite number.
  absl::StatusOr<bool> Train();

  const TrainingPosition& position() const { return position_; }

 private:
  TrainingSession(const TrainingRun& run, Communicator* ranks) : run_(run), ranks_(ranks) {}

  bool first() const { return ranks_ == nullptr || ranks_->rank() == 0; }
  // What all ranks come to.
  absl::Status Agreed(const absl::Status& status) const;
  absl::Status ReadInput();
  absl::Status Prepare();
  // Rank 0: makes the folder. Sets `begun` for all ranks.
  absl::Status PrepareOutput(bool resume, bool& begun);
  absl::Status Resume();
  // Rank 0: reads the newest checkpoint.
  absl::Status LoadState(std::optional<LoadedTrainingState>& state) const;
  // Says once which rank is waited for when this process is told to stop, for a launcher that sees
  // one die tells the others.
  void WatchForLostRanks(const StopSignal& stop);
  bool Ended() const;
  absl::Status TrainStep();
  absl::Status Evaluate();
  // Early stopping: whether this evaluation is the best so far.
  void Compare(const BatchLoss& loss);
  absl::Status LogStep();
  absl::Status SaveState();
  absl::Status SaveResult();
  absl::Status WriteResult(ModelToSave model);

  const TrainingRun run_;
  Communicator* const ranks_;
  std::vector<std::string> hosts_;  // of the ranks
  int64_t saved_step_ = 0;          // of the newest checkpoint; 0: none
  int64_t steps_ = 0;               // of the whole run
  ModelConfig config_;
  std::unique_ptr<Replicas> replicas_;
  RunData data_;
  TrainingPosition position_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<TrainingProgress> progress_;

  // Since the last line of the log.
  BatchLoss loss_;
  double step_loss_ = 0;  // of the last step
  double gradient_norm_ = 0;
  double rate_ = 0;
  int64_t logged_tokens_ = 0;
  double logged_seconds_ = 0;
  double logged_communication_ = 0;  // seconds
  double limit_ = 0;                 // tokens per second, 0: unknown
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_SESSION_H_
