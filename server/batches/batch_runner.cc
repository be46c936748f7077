#include "server/batches/batch_runner.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/batches/batch_input.h"
#include "server/log/log.h"

namespace hippodrome {
namespace {

constexpr size_t kMostRunning = 8;  // batches, each of another owner
constexpr auto kPauseAfterError = std::chrono::seconds(5);
constexpr auto kSyncEvery = std::chrono::seconds(10);
constexpr auto kLookEvery = std::chrono::milliseconds(100);  // while one runs
constexpr auto kIdleLook = std::chrono::milliseconds(10000);

std::string NoAnswer(const char* code, const char* message) {
  return nlohmann::ordered_json{{"code", code}, {"message", message}}.dump();
}

LogLine BatchLogLine(LogLevel level, const char* event, const Batch& batch) {
  LogLine line(level, event);
  line.Text("batch", batch.id).Text("key", batch.owner).Text("endpoint", batch.endpoint);
  return line;
}

void LogEnd(const Batch& batch) {
  const int64_t seconds = batch.at(batch.status) - batch.at(BatchStatus::kValidating);
  LogLine line = BatchLogLine(LogLevel::kInfo, "batch_ended", batch);
  line.Text("status", Name(batch.status))
      .Integer("completed", batch.counts.completed)
      .Integer("failed", batch.counts.failed)
      .Seconds("duration_s", std::chrono::seconds(seconds));
  if (!batch.errors.empty()) line.Text("reason", batch.errors.front().code);
  Log(std::move(line));
}

absl::Status GiveUp(RunningBatch& running, BatchStatus outcome) {
  if (outcome == BatchStatus::kCancelled) {
    return running.GiveUp(
        NoAnswer("batch_cancelled", "the batch was cancelled before this line was answered"),
        BatchLineResult::kCancelled);
  }
  return running.GiveUp(
      NoAnswer("batch_expired", "the batch expired before this line was answered"),
      BatchLineResult::kExpired);
}

// Whether it is of no use to try again: the input is gone, or is not what it was.
bool IsLost(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

}  // namespace

BatchRunner::BatchRunner(const Options& options)
    : store_(options.store),
      around_{.store = options.store,
              .metrics = options.metrics,
              .bell = bell_,
              .answer = options.answer,
              .admit = options.admit,
              .most_calls = options.most_calls,
              .most_line_bytes = options.most_line_bytes} {
  store_.OnChange([this] { bell_.Ring(); });
  thread_ = std::thread([this] { Run(); });
}

void BatchRunner::Stop() {
  stopping_.store(true);
  bell_.Ring();
  if (thread_.joinable()) thread_.join();
}

void BatchRunner::Run() {
  while (!stopping_.load()) {
    bool moved = false;
    try {
      moved = Turn();
    } catch (const std::exception&) {  // no memory even to look
    }
    if (!moved) bell_.WaitFor(tasks_.empty() ? kIdleLook : kLookEvery);
  }
  for (auto& [id, task] : tasks_) {
    if (task.running != nullptr) task.running->Sync().IgnoreError();
  }
  tasks_.clear();
}

const std::vector<Batch>& BatchRunner::Unfinished() {
  const int64_t changes = store_.changes();
  if (seen_ == changes) return unfinished_;
  unfinished_ = store_.Unfinished();
  seen_ = changes;
  return unfinished_;
}

bool BatchRunner::Turn() {
  std::set<std::string> owners;  // of those that run
  bool moved = false;
  for (const Batch& batch : Unfinished()) {
    if (stopping_.load()) return false;
    const bool runs = batch.status == BatchStatus::kInProgress && !batch.outcome;
    const bool may_run = runs && owners.size() < kMostRunning && owners.insert(batch.owner).second;
    Task& task = tasks_[batch.id];
    if (Clock::now() < task.paused_until) continue;
    absl::StatusOr<bool> step = false;
    try {
      step = Advance(batch, task, may_run);
    } catch (const std::exception& error) {  // for want of memory, or of a device
      step = Internal(error.what());
    }
    if (!step.ok()) Pause(batch, task, step.status());
    moved = moved || step.value_or(false);
  }
  return moved;
}

void BatchRunner::Pause(const Batch& batch, Task& task, const absl::Status& why) {
  Log(BatchLogLine(LogLevel::kWarning, "batch_paused", batch).Text("message", Message(why)));
  task.paused_until = Clock::now() + kPauseAfterError;
}

absl::StatusOr<bool> BatchRunner::Advance(const Batch& batch, Task& task, bool may_run) {
  if (batch.outcome) {
    HIPPODROME_RETURN_IF_ERROR(Publish(batch));
  } else if (batch.status == BatchStatus::kCancelling) {
    HIPPODROME_RETURN_IF_ERROR(End(batch, task, BatchStatus::kCancelled));
  } else if (store_.now() >= batch.expires_at) {
    HIPPODROME_RETURN_IF_ERROR(End(batch, task, BatchStatus::kExpired));
  } else if (batch.status == BatchStatus::kValidating) {
    HIPPODROME_RETURN_IF_ERROR(Validate(batch));
  } else if (may_run) {
    return RunOrFail(batch, task);
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<bool> BatchRunner::RunOrFail(const Batch& batch, Task& task) {
  absl::StatusOr<bool> moved = RunLines(batch, task);
  const bool gone = absl::IsPermissionDenied(moved.status());
  if (!gone && !IsLost(moved.status())) return moved;
  if (task.running != nullptr) HIPPODROME_RETURN_IF_ERROR(task.running->Sync());
  HIPPODROME_RETURN_IF_ERROR(
      Decide(batch, task, BatchStatus::kFailed,
             {{gone ? "key_gone" : "input_file_lost", Message(moved.status())}}));
  return true;
}

absl::Status BatchRunner::Validate(const Batch& batch) {
  const absl::StatusOr<BatchInput> input =
      CheckBatchInput(store_.FilePath(batch.input_file), batch.endpoint, around_.most_line_bytes);
  if (IsLost(input.status())) {
    return Decide(batch, tasks_[batch.id], BatchStatus::kFailed,
                  {{"input_file_lost", Message(input.status())}});
  }
  HIPPODROME_RETURN_IF_ERROR(input.status());
  if (!input->errors.empty()) {
    return Decide(batch, tasks_[batch.id], BatchStatus::kFailed, input->errors);
  }
  HIPPODROME_RETURN_IF_ERROR(store_.Change(batch.id, [&](Batch& changed) {
    changed.total = input->lines;
    if (changed.status != BatchStatus::kValidating) return;  // cancelled meanwhile
    changed.status = BatchStatus::kInProgress;
    changed.at(BatchStatus::kInProgress) = store_.now();
  }));
  Log(BatchLogLine(LogLevel::kInfo, "batch_started", batch).Integer("lines", input->lines));
  return absl::OkStatus();
}

absl::Status BatchRunner::Open(const Batch& batch, Task& task) {
  if (task.running != nullptr) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(task.running, RunningBatch::Open(batch, around_));
  task.synced = Clock::now();
  store_.SetCounts(batch.id, task.running->counts());
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchRunner::RunLines(const Batch& batch, Task& task) {
  HIPPODROME_RETURN_IF_ERROR(Open(batch, task));
  HIPPODROME_ASSIGN_OR_RETURN(const bool moved, task.running->Step(Clock::now()));
  store_.SetCounts(batch.id, task.running->counts());
  if (task.running->done()) {
    HIPPODROME_RETURN_IF_ERROR(End(batch, task, BatchStatus::kCompleted));
    return true;
  }
  if (Clock::now() - task.synced > kSyncEvery) {
    HIPPODROME_RETURN_IF_ERROR(task.running->Sync());
    task.synced = Clock::now();
  }
  return moved;
}

// Lines that have no answer then get none.
absl::Status BatchRunner::End(const Batch& batch, Task& task, BatchStatus outcome) {
  if (batch.at(BatchStatus::kInProgress) == 0) return Decide(batch, task, outcome);
  const absl::Status opened = Open(batch, task);
  if (IsLost(opened)) return Decide(batch, task, outcome);
  HIPPODROME_RETURN_IF_ERROR(opened);
  if (outcome != BatchStatus::kCompleted) {
    const absl::Status noted = GiveUp(*task.running, outcome);
    if (!IsLost(noted)) HIPPODROME_RETURN_IF_ERROR(noted);
  }
  HIPPODROME_RETURN_IF_ERROR(task.running->Sync());
  return Decide(batch, task, outcome);
}

absl::Status BatchRunner::Decide(const Batch& batch, Task& task, BatchStatus outcome,
                                 const std::vector<BatchError>& errors) {
  HIPPODROME_RETURN_IF_ERROR(store_.Change(batch.id, [&](Batch& changed) {
    changed.outcome = outcome;
    changed.errors = errors;
    if (task.running != nullptr) changed.counts = task.running->counts();
    if (outcome != BatchStatus::kCompleted || changed.status == BatchStatus::kCancelling) return;
    changed.status = BatchStatus::kFinalizing;
    changed.at(BatchStatus::kFinalizing) = store_.now();
  }));
  task.running.reset();
  return absl::OkStatus();
}

absl::Status BatchRunner::Publish(const Batch& batch) {
  Batch published = batch;
  HIPPODROME_RETURN_IF_ERROR(store_.Publish(published));
  const BatchStatus outcome = *batch.outcome;
  HIPPODROME_RETURN_IF_ERROR(store_.Change(batch.id, [&](Batch& changed) {
    changed.output_file = published.output_file;
    changed.error_file = published.error_file;
    changed.status = outcome;
    changed.at(outcome) = store_.now();
    published = changed;
  }));
  tasks_.erase(batch.id);
  LogEnd(published);
  return absl::OkStatus();
}

}  // namespace hippodrome
