// The lines of a batch's input.
#ifndef HIPPODROME_SERVER_BATCHES_BATCH_INPUT_H_
#define HIPPODROME_SERVER_BATCHES_BATCH_INPUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/batches/batch.h"

namespace hippodrome {

// Paths that the lines of a batch can have, all of POST.
std::span<const std::string_view> BatchEndpoints();

// {"custom_id", "method": "POST", "url", "body"}
struct BatchLine {
  std::string custom_id;
  std::string body;
};

// Reads a line whose url must be `endpoint`. A completion whose body has no seed gets one that
// comes from the bytes of the line, so that it is answered alike whenever it is computed. Errors:
// kInvalidArgument, with the field where there is one.
absl::StatusOr<BatchLine> ParseBatchLine(const std::string& line, const std::string& endpoint);

struct BatchInput {
  int64_t lines = 0;
  std::vector<BatchError> errors;  // some of them; empty: the batch can run
};

// Reads all lines of the file at `path`, of at most `most_line_bytes` each. Errors: the file cannot
// be read.
absl::StatusOr<BatchInput> CheckBatchInput(const std::string& path, const std::string& endpoint,
                                           int64_t most_line_bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BATCH_INPUT_H_
