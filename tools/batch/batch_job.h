// What a job is, beside its output: OUT.job says it, so that a job goes on only as it began.
#ifndef HIPPODROME_TOOLS_BATCH_BATCH_JOB_H_
#define HIPPODROME_TOOLS_BATCH_BATCH_JOB_H_

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/batch/batch_output.h"

namespace hippodrome {

// One of `count` parts of a job, which are the shares of LineReader::TakeShare().
struct BatchShare {
  int64_t index = 0;
  int64_t count = 1;
};

// OUT, or where the job has several shares, OUT.part-00000-of-00002.
std::string PartPath(const std::string& output, const BatchShare& share);

// What a share came to.
struct BatchTotals {
  BatchCounts counts;
  int64_t bytes = 0;     // of its file
  std::string checksum;  // of its file, as of Xxh3
};

// The file PART.job. What is in it: {"job": DESCRIPTION, "totals": {...} or null}.
class JobFile {
 public:
  // `description`: an object of all that decides about the bytes of the output.
  JobFile(const std::string& part, nlohmann::json description);

  // Begins the job, or goes on with it. True when its output, of `bytes`, is complete. Errors:
  // kFailedPrecondition where the output is another job's, naming what differs, or is not as it was
  // left.
  absl::StatusOr<bool> Begin(int64_t bytes) const;
  // Notes that the output is complete.
  absl::Status Complete(const BatchTotals& totals) const;

  // What Complete() noted; nothing before, or where there is no such job.
  std::optional<BatchTotals> totals() const;

 private:
  absl::Status Write(const nlohmann::json& totals) const;

  const std::string part_, path_;
  const nlohmann::json description_;
};

// The checksum of a file. Errors: kInternal.
absl::StatusOr<std::string> ChecksumFile(const std::string& path);

// Where all shares of the job are complete, writes OUT.manifest.json, {"job", "parts": [{"path",
// "lines", "errors", "bytes", "xxh3"}], "lines", "errors"}, and returns true: whoever comes last
// writes it, and it is the same whoever does.
absl::StatusOr<bool> WriteManifest(const std::string& output, int64_t shares,
                                   const nlohmann::json& description);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BATCH_BATCH_JOB_H_
