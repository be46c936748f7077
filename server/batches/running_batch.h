// The lines of one batch through the routes of the server.
#ifndef HIPPODROME_SERVER_BATCHES_RUNNING_BATCH_H_
#define HIPPODROME_SERVER_BATCHES_RUNNING_BATCH_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/access_control.h"
#include "server/batches/batch.h"
#include "server/batches/batch_input.h"
#include "server/batches/batch_journal.h"
#include "server/batches/batch_store.h"
#include "server/batches/bell.h"
#include "server/batches/line_reader.h"
#include "server/http/http_types.h"
#include "server/metrics/batch_metrics.h"

namespace hippodrome {

// What batches run in; all of it outlives them.
struct BatchSurroundings {
  BatchStore& store;
  BatchMetrics& metrics;
  Bell& bell;  // rung when an answer may be there
  // Answers a request whose caller is admitted.
  std::function<HttpReply(HttpRequest request)> answer;
  // As AccessControl::AdmitJob().
  std::function<absl::StatusOr<std::shared_ptr<CallPermit>>(const std::string& key)> admit;
  int64_t most_calls = 1;       // of a batch that are answered at once, >= 1
  int64_t most_line_bytes = 0;  // of its input
};

// Not thread-safe.
class RunningBatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Goes on behind what is answered already. Errors: kNotFound where the input is gone; those of
  // BatchJournal::Open().
  static absl::StatusOr<std::unique_ptr<RunningBatch>> Open(const Batch& batch,
                                                            const BatchSurroundings& around);
  ~RunningBatch();  // gives up what is being answered

  // Takes answers that are there, and asks for more as far as there is room. Whether anything
  // moved. Errors: kPermissionDenied where the key of the batch may call no more; those of reading
  // and writing, after which it may be called again: then it goes on where it was.
  absl::StatusOr<bool> Step(Clock::time_point now);
  // Whether all lines are answered and on the disk.
  bool done() const { return read_all_ && window_.empty(); }
  // Lines that are answered.
  const LineCounts& counts() const { return journal_->counts(); }

  // Notes of all lines that have no answer yet that they will have none, `error` being {"code",
  // "message"}. May be called again after an error.
  absl::Status GiveUp(const std::string& error, BatchLineResult result);
  // Waits until all is on the disk.
  absl::Status Sync() { return journal_->Sync(); }

 private:
  struct Line;

  RunningBatch(const Batch& batch, const BatchSurroundings& around,
               std::unique_ptr<LineReader> lines, std::unique_ptr<BatchJournal> journal);
  absl::Status Skip();
  // Into the window; whether there was one.
  absl::StatusOr<bool> ReadLine();
  // These return whether anything moved.
  absl::StatusOr<bool> Read();
  bool Advance(Clock::time_point now);
  absl::StatusOr<bool> Ask(Clock::time_point now);
  absl::StatusOr<bool> Write(bool must);

  HttpRequest Request(const Line& line) const;
  absl::Status Submit(Line& line, Clock::time_point now);
  void Take(Line& line, HttpResponse response, Clock::time_point now);
  void Refused(const HttpResponse& response, Clock::time_point now);
  absl::Status WriteFront(const LineResult& result, BatchLineResult as, bool must);
  bool HasRoom() const;

  const Batch batch_;
  const BatchSurroundings around_;
  const std::unique_ptr<LineReader> lines_;
  const std::unique_ptr<BatchJournal> journal_;
  std::list<Line> window_;  // lines in order, from the first one that is not written
  int64_t bytes_ = 0;       // of these and of their answers
  int64_t read_ = 0;        // lines
  int64_t calls_ = 0;       // that are being answered
  double most_calls_;       // fewer than may be, where the server has refused some
  bool read_all_ = false;
  Clock::time_point blocked_until_;  // no call before
  bool blocked_by_key_ = false;      // then the end of a call may make room
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_RUNNING_BATCH_H_
