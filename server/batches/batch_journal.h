// What a batch has answered so far: its output and error files, which are their own journal.
#ifndef HIPPODROME_SERVER_BATCHES_BATCH_JOURNAL_H_
#define HIPPODROME_SERVER_BATCHES_BATCH_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batches/append_file.h"
#include "server/batches/batch.h"

namespace hippodrome {

// What became of a line.
struct LineResult {
  int http_status = 0;  // 0: it was not reached; then `body` is {"code", "message"}
  std::string body;     // JSON
};

// Of line `number`, from 1, of a batch. The same of a line whenever it is computed.
std::string LineId(const std::string& batch, int64_t number);         // "batch_req_..."
std::string LineRequestId(const std::string& batch, int64_t number);  // "req_..."

// Records are in the order of the lines, each in one of the two files, and say of which line they
// are. Not thread-safe.
class BatchJournal {
 public:
  // Opens the files of the batch with that id, makes those that are not there, and cuts both to the
  // last line up to which none is missing. Errors: those of AppendFile.
  static absl::StatusOr<std::unique_ptr<BatchJournal>> Open(const std::string& batch,
                                                            const std::string& output_path,
                                                            const std::string& error_path);

  int64_t lines() const { return counts_.completed + counts_.failed; }
  const LineCounts& counts() const { return counts_; }

  // The record of the next line, with its line feed.
  std::string Record(const std::string& custom_id, const LineResult& result) const;
  // Adds that record. It is in the file, or waits in a buffer for the next Flush(), whatever is
  // returned.
  absl::Status Append(const std::string& record, const LineResult& result);
  // As of AppendFile.
  absl::Status Flush();
  absl::Status Sync();

 private:
  BatchJournal(std::string batch, std::unique_ptr<AppendFile> output,
               std::unique_ptr<AppendFile> errors)
      : batch_(std::move(batch)), output_(std::move(output)), errors_(std::move(errors)) {}
  absl::Status Recover();

  const std::string batch_;
  const std::unique_ptr<AppendFile> output_, errors_;
  LineCounts counts_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BATCH_JOURNAL_H_
