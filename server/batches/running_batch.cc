#include "server/batches/running_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/status.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

// Lines that are answered wait in memory for those before them.
constexpr int64_t kWindowPerCall = 16;
constexpr int64_t kMostWindowBytes = int64_t{64} << 20;
// Room in a queue comes and goes quickly.
constexpr std::chrono::milliseconds kQueueRetry{100};

// Whether the same call may be answered later.
bool IsRefusal(int status) { return status == 429 || status == 503 || status == 504; }

std::chrono::milliseconds RetryAfter(const HttpResponse& response) {
  int seconds = 1;
  for (const auto& [name, value] : response.headers) {
    if (name == "Retry-After" && !absl::SimpleAtoi(value, &seconds)) seconds = 1;
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

struct RunningBatch::Line {
  enum class State : uint8_t { kWaits, kRuns, kAnswered };

  int64_t bytes() const { return std::ssize(text.body) + std::ssize(result.body); }

  int64_t number = 0;
  BatchLine text;
  State state = State::kWaits;
  bool tried_again = false;
  std::unique_ptr<std::atomic<bool>> ready;  // outlives the work
  HttpReply reply;
  std::shared_ptr<CallPermit> permit;  // while it runs; null: none is needed
  LineResult result;
};

absl::StatusOr<std::unique_ptr<RunningBatch>> RunningBatch::Open(const Batch& batch,
                                                                 const BatchSurroundings& around) {
  HIPPODROME_ASSIGN_OR_RETURN(
      std::unique_ptr<LineReader> lines,
      LineReader::Open(around.store.FilePath(batch.input_file), around.most_line_bytes));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<BatchJournal> journal,
                              BatchJournal::Open(batch.id, around.store.OutputPath(batch.id),
                                                 around.store.ErrorPath(batch.id)));
  auto running = std::unique_ptr<RunningBatch>(
      new RunningBatch(batch, around, std::move(lines), std::move(journal)));
  HIPPODROME_RETURN_IF_ERROR(running->Skip());
  return running;
}

RunningBatch::RunningBatch(const Batch& batch, const BatchSurroundings& around,
                           std::unique_ptr<LineReader> lines, std::unique_ptr<BatchJournal> journal)
    : batch_(batch),
      around_(around),
      lines_(std::move(lines)),
      journal_(std::move(journal)),
      most_calls_(static_cast<double>(around.most_calls)) {}

RunningBatch::~RunningBatch() = default;

absl::Status RunningBatch::Skip() {
  InputLine line;
  for (; read_ < journal_->lines(); ++read_) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, lines_->Next(line));
    if (!more) return NotFound("the input has fewer lines than were answered");
  }
  return absl::OkStatus();
}

bool RunningBatch::HasRoom() const {
  return window_.empty() ||
         (std::ssize(window_) < around_.most_calls * kWindowPerCall && bytes_ < kMostWindowBytes);
}

// All were checked before; one that is wrong now has become so on the disk.
absl::StatusOr<bool> RunningBatch::ReadLine() {
  InputLine input;
  HIPPODROME_ASSIGN_OR_RETURN(const bool more, lines_->Next(input));
  if (!more) return false;
  HIPPODROME_ASSIGN_OR_RETURN(BatchLine text, ParseBatchLine(input.text, batch_.endpoint));
  Line& added = window_.emplace_back();
  added.number = ++read_;
  added.text = std::move(text);
  bytes_ += added.bytes();
  return true;
}

absl::StatusOr<bool> RunningBatch::Read() {
  bool moved = false;
  while (!read_all_ && HasRoom()) {
    const bool enough = std::ssize(window_) >= around_.most_calls && calls_ >= most_calls_;
    if (enough) break;
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, ReadLine());
    read_all_ = !more;
    moved = moved || more;
  }
  return moved;
}

HttpRequest RunningBatch::Request(const Line& line) const {
  HttpRequest request;
  request.method = "POST";
  request.path = batch_.endpoint;
  request.headers["content-type"] = "application/json";
  request.body = line.text.body;
  request.client = "batches";
  request.background = true;
  request.stamp = {LineRequestId(batch_.id, line.number), batch_.at(BatchStatus::kValidating)};
  return request;
}

absl::Status RunningBatch::Submit(Line& line, Clock::time_point now) {
  absl::StatusOr<std::shared_ptr<CallPermit>> permit = around_.admit(batch_.owner);
  if (absl::IsResourceExhausted(permit.status())) {
    blocked_until_ = now + std::chrono::seconds(RetryAfterSeconds(permit.status()));
    blocked_by_key_ = true;
    return absl::OkStatus();
  }
  HIPPODROME_RETURN_IF_ERROR(permit.status());
  line.permit = *std::move(permit);
  HttpRequest request = Request(line);
  request.permit = line.permit;
  HttpReply reply = around_.answer(std::move(request));
  while (reply.later) reply = std::exchange(reply.later, nullptr)();
  line.state = Line::State::kRuns;
  ++calls_;
  if (reply.work == nullptr) {
    Take(line, std::move(reply.response), now);
    return absl::OkStatus();
  }
  line.ready = std::make_unique<std::atomic<bool>>(false);
  line.reply = std::move(reply);
  line.reply.work->OnUpdate([&bell = around_.bell, ready = line.ready.get()] {
    ready->store(true);
    bell.Ring();
  });
  return absl::OkStatus();
}

void RunningBatch::Refused(const HttpResponse& response, Clock::time_point now) {
  const bool full = response.status == 429 && !response.limited;
  blocked_by_key_ = response.limited;
  blocked_until_ = now + (full ? kQueueRetry : RetryAfter(response));
  // So that others find room in the queue.
  if (full) most_calls_ = std::max(1.0, std::min(most_calls_, calls_ + 1.0) / 2);
}

// An error of the server itself may be that of a model that has failed, which then refuses to be
// asked again: no line's own error.
void RunningBatch::Take(Line& line, HttpResponse response, Clock::time_point now) {
  line.reply = HttpReply();
  const std::shared_ptr<CallPermit> permit = std::move(line.permit);
  --calls_;
  if (IsRefusal(response.status) || (response.status >= 500 && !line.tried_again)) {
    line.state = Line::State::kWaits;
    line.tried_again = !IsRefusal(response.status);
    if (permit != nullptr) permit->TakeBack();
    if (IsRefusal(response.status)) Refused(response, now);
    return;
  }
  most_calls_ = std::min(static_cast<double>(around_.most_calls), most_calls_ + 1 / most_calls_);
  if (blocked_by_key_) blocked_until_ = now;
  line.state = Line::State::kAnswered;
  line.result = {response.status, std::move(response.body)};
  bytes_ += std::ssize(line.result.body);
}

bool RunningBatch::Advance(Clock::time_point now) {
  bool moved = false;
  for (Line& line : window_) {
    if (line.state != Line::State::kRuns || !line.ready->exchange(false)) continue;
    if (!line.reply.work->Advance(line.reply.response)) continue;
    Take(line, std::move(line.reply.response), now);
    moved = true;
  }
  return moved;
}

absl::StatusOr<bool> RunningBatch::Ask(Clock::time_point now) {
  bool moved = false;
  for (Line& line : window_) {
    if (now < blocked_until_ || calls_ >= static_cast<int64_t>(most_calls_)) break;
    if (line.state != Line::State::kWaits) continue;
    HIPPODROME_RETURN_IF_ERROR(Submit(line, now));
    moved = moved || line.state != Line::State::kWaits;
  }
  return moved;
}

absl::Status RunningBatch::WriteFront(const LineResult& result, BatchLineResult as, bool must) {
  const std::string record = journal_->Record(window_.front().text.custom_id, result);
  HIPPODROME_RETURN_IF_ERROR(around_.store.Grow(std::ssize(record), must));
  // From here on it is in the journal, come what may.
  const absl::Status written = journal_->Append(record, result);
  around_.metrics.Line(as);
  bytes_ -= window_.front().bytes();
  window_.pop_front();
  return written;
}

absl::StatusOr<bool> RunningBatch::Write(bool must) {
  bool moved = false;
  while (!window_.empty() && window_.front().state == Line::State::kAnswered) {
    const LineResult& result = window_.front().result;
    const bool answered = result.http_status == 200;
    HIPPODROME_RETURN_IF_ERROR(WriteFront(
        result, answered ? BatchLineResult::kCompleted : BatchLineResult::kFailed, must));
    moved = true;
  }
  return moved;
}

absl::StatusOr<bool> RunningBatch::Step(Clock::time_point now) {
  HIPPODROME_RETURN_IF_ERROR(journal_->Flush());
  const bool advanced = Advance(now);
  HIPPODROME_ASSIGN_OR_RETURN(const bool written, Write(false));
  HIPPODROME_ASSIGN_OR_RETURN(const bool read, Read());
  HIPPODROME_ASSIGN_OR_RETURN(const bool asked, Ask(now));
  HIPPODROME_RETURN_IF_ERROR(journal_->Flush());
  return advanced || written || read || asked;
}

absl::Status RunningBatch::GiveUp(const std::string& error, BatchLineResult result) {
  const LineResult unreached{0, error};
  for (;;) {
    for (Line& line : window_) {  // what is under way
      line.reply = HttpReply();
      line.permit.reset();
    }
    while (!window_.empty()) {
      const Line& line = window_.front();
      if (line.state == Line::State::kAnswered) {
        HIPPODROME_RETURN_IF_ERROR(Write(true).status());
        continue;
      }
      HIPPODROME_RETURN_IF_ERROR(WriteFront(unreached, result, true));
    }
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, ReadLine());
    if (!more) break;
  }
  read_all_ = true;
  return journal_->Flush();
}

}  // namespace hippodrome
