// The lines of a job through a model, as fast as it takes them.
#ifndef HIPPODROME_TOOLS_BATCH_RUN_BATCH_H_
#define HIPPODROME_TOOLS_BATCH_RUN_BATCH_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "server/batches/line_reader.h"
#include "tools/batch/batch_output.h"
#include "tools/batch/batch_task.h"

namespace hippodrome {

struct BatchWindow {
  // Lines that are read and not written yet, and bytes of them. Those of a length run together, so
  // more of them fill batches better; no answer depends on it.
  int64_t lines = 4096;
  int64_t bytes = int64_t{64} << 20;
};

// Called now and then, with the lines that are done and those that were read so far.
using BatchProgress = std::function<void(const BatchCounts& done, int64_t read)>;

// Answers what `lines` has, behind what `output` has already, on the calling thread: it reads,
// tokenises and writes while the model's own thread computes. Errors that are a line's own become
// its record. Ends early, with what is done flushed, when `stopped` says so. The lines and errors
// in the output, those of earlier runs included. Errors: those of reading and writing;
// kFailedPrecondition where the output has more lines than the input; kUnavailable where the model
// has failed.
absl::StatusOr<BatchCounts> RunBatch(LineReader& lines, const LineAnswerer& answerer,
                                     BatchOutput& output, const BatchWindow& window,
                                     const std::function<bool()>& stopped,
                                     const BatchProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BATCH_RUN_BATCH_H_
