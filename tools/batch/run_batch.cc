#include "tools/batch/run_batch.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "server/batches/bell.h"

namespace hippodrome {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSyncEvery = std::chrono::seconds(10);
constexpr auto kLookEvery = std::chrono::milliseconds(200);  // for signals

struct PendingLine {
  std::string text;
  std::string id;
  absl::Status error;              // where there is no work
  std::unique_ptr<LineWork> work;  // null: its answer is `error`
};

class BatchRun {
 public:
  BatchRun(LineReader& lines, const LineAnswerer& answerer, BatchOutput& output,
           const BatchWindow& window)
      : lines_(lines), answerer_(answerer), output_(output), limits_(window) {}

  absl::Status SkipFound();
  absl::Status Run(const std::function<bool()>& stopped, const BatchProgress& progress);
  const BatchCounts& done() const { return done_; }

 private:
  bool HasRoom() const;
  // Whether anything moved.
  absl::StatusOr<bool> Fill();
  absl::StatusOr<bool> Drain();
  bool Submit(std::string& text);
  absl::StatusOr<std::optional<absl::StatusOr<LineAnswer>>> TakeFront();
  absl::Status CheckModel(const PendingLine& line, const absl::Status& error) const;
  absl::Status Write(const absl::StatusOr<LineAnswer>& answer);

  LineReader& lines_;
  const LineAnswerer& answerer_;
  BatchOutput& output_;
  const BatchWindow limits_;
  Bell bell_;  // outlives the work
  std::deque<PendingLine> window_;
  std::optional<std::string> held_;  // a line for which there was no room
  int64_t bytes_ = 0;                // of the lines in the window
  bool read_all_ = false;
  BatchCounts done_;
};

absl::Status BatchRun::SkipFound() {
  done_ = output_.found();
  InputLine line;
  for (int64_t i = 0; i < done_.lines; ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, lines_.Next(line));
    if (more) continue;
    return FailedPrecondition("the output has " + std::to_string(done_.lines) +
                              " lines, and the input has " + std::to_string(i));
  }
  return absl::OkStatus();
}

bool BatchRun::HasRoom() const {
  return window_.empty() ||
         (static_cast<int64_t>(window_.size()) < limits_.lines && bytes_ < limits_.bytes);
}

// False where there is no room; then `text` stays.
bool BatchRun::Submit(std::string& text) {
  BegunLine begun = answerer_.Begin(text);
  if (absl::IsResourceExhausted(begun.work.status()) && !window_.empty()) return false;
  PendingLine line{std::move(text), std::move(begun.id), begun.work.status(), nullptr};
  if (begun.work.ok()) line.work = *std::move(begun.work);
  bytes_ += std::ssize(line.text);
  window_.push_back(std::move(line));
  return true;
}

absl::StatusOr<bool> BatchRun::Fill() {
  bool moved = false;
  InputLine line;
  while (HasRoom()) {
    if (!held_) {
      HIPPODROME_ASSIGN_OR_RETURN(const bool more, lines_.Next(line));
      read_all_ = !more;
      if (!more) break;
      if (line.too_long) {
        window_.push_back({"", "", InvalidArgument("the line is too long"), nullptr});
        moved = true;
        continue;
      }
      held_ = std::move(line.text);
    }
    if (!Submit(*held_)) break;
    held_.reset();
    moved = true;
  }
  return moved;
}

// An error of the engine is the line's own, unless the model takes nothing any more.
absl::Status BatchRun::CheckModel(const PendingLine& line, const absl::Status& error) const {
  if (absl::IsUnavailable(error)) return error;
  if (!absl::IsInternal(error)) return absl::OkStatus();
  return absl::IsUnavailable(answerer_.Begin(line.text).work.status()) ? error : absl::OkStatus();
}

// Nothing where the answer is not here yet. Errors: the model has failed.
absl::StatusOr<std::optional<absl::StatusOr<LineAnswer>>> BatchRun::TakeFront() {
  PendingLine& line = window_.front();
  std::optional<absl::StatusOr<LineAnswer>> answer;
  if (line.work != nullptr) {
    answer = line.work->Take();
  } else {
    answer = line.error;
  }
  if (!answer) return answer;
  if (!answer->ok()) HIPPODROME_RETURN_IF_ERROR(CheckModel(line, answer->status()));
  return answer;
}

absl::Status BatchRun::Write(const absl::StatusOr<LineAnswer>& answer) {
  HIPPODROME_RETURN_IF_ERROR(output_.Append(window_.front().id, answer));
  ++done_.lines;
  if (!answer.ok()) ++done_.errors;
  bytes_ -= std::ssize(window_.front().text);
  window_.pop_front();
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchRun::Drain() {
  bool moved = false;
  while (!window_.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto answer, TakeFront());
    if (!answer) break;
    HIPPODROME_RETURN_IF_ERROR(Write(*answer));
    moved = true;
  }
  return moved;
}

absl::Status BatchRun::Run(const std::function<bool()>& stopped, const BatchProgress& progress) {
  HIPPODROME_RETURN_IF_ERROR(SkipFound());
  Clock::time_point synced = Clock::now();
  while (!stopped()) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool filled, Fill());
    HIPPODROME_ASSIGN_OR_RETURN(const bool drained, Drain());
    progress(done_, done_.lines + std::ssize(window_));
    if (read_all_ && window_.empty() && !held_) return absl::OkStatus();
    if (filled || drained) continue;
    HIPPODROME_RETURN_IF_ERROR(output_.Flush());
    if (Clock::now() - synced > kSyncEvery) {
      HIPPODROME_RETURN_IF_ERROR(output_.Sync());
      synced = Clock::now();
    }
    window_.front().work->OnReady([this] { bell_.Ring(); });
    bell_.WaitFor(kLookEvery);
  }
  return output_.Sync();
}

}  // namespace

absl::StatusOr<BatchCounts> RunBatch(LineReader& lines, const LineAnswerer& answerer,
                                     BatchOutput& output, const BatchWindow& window,
                                     const std::function<bool()>& stopped,
                                     const BatchProgress& progress) {
  BatchRun run(lines, answerer, output, window);
  const absl::Status status = run.Run(stopped, progress);
  HIPPODROME_RETURN_IF_ERROR(output.Flush());  // what is done, also where the model has failed
  if (!status.ok()) return status;
  return run.done();
}

}  // namespace hippodrome
