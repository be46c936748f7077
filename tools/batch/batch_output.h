// Where the answers of a job go, in the order of the lines. The file is its own journal: after a
// crash it holds what is done, and perhaps a part of the next record, which is cut off.
#ifndef HIPPODROME_TOOLS_BATCH_BATCH_OUTPUT_H_
#define HIPPODROME_TOOLS_BATCH_BATCH_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/batch/batch_task.h"

namespace hippodrome {

struct BatchCounts {
  int64_t lines = 0;
  int64_t errors = 0;  // of these
};

// Not thread-safe.
class BatchOutput {
 public:
  virtual ~BatchOutput() = default;

  // Of what was there when the file was opened, cut to whole records.
  virtual BatchCounts found() const = 0;
  // Adds what became of the next line, whose id is `id`, as JSON or empty.
  virtual absl::Status Append(const std::string& id, const absl::StatusOr<LineAnswer>& answer) = 0;
  // As of AppendFile.
  virtual absl::Status Flush() = 0;
  virtual absl::Status Sync() = 0;
  // Completes the file, and makes it last.
  virtual absl::Status Finish() = 0;
};

// A line of JSON for each: {"id", "result"} or {"id", "error"}; "id" where the line has one.
absl::StatusOr<std::unique_ptr<BatchOutput>> OpenJsonLines(const std::string& path);

// A matrix of f32, [lines, columns]: NumPy's format, or a safetensors file with the tensor
// "embeddings". The row of an error is NaN, and PATH.errors.jsonl says {"row", "id", "error"}. The
// head of the file is written by Finish(): nothing reads it before.
enum class MatrixFormat : uint8_t { kNpy, kSafetensors };
absl::StatusOr<std::unique_ptr<BatchOutput>> OpenMatrix(const std::string& path,
                                                        MatrixFormat format, int64_t columns);

// The beginning of such a file, whose length does not depend on the shape.
std::string MatrixHead(MatrixFormat format, int64_t rows, int64_t columns);

// Whether a record of OpenJsonLines() is of an error.
bool IsErrorRecord(std::string_view record);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BATCH_BATCH_OUTPUT_H_
