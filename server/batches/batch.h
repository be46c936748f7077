// The objects of OpenAI's /v1/files and /v1/batches.
#ifndef HIPPODROME_SERVER_BATCHES_BATCH_H_
#define HIPPODROME_SERVER_BATCHES_BATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/calls/call_record.h"

namespace hippodrome {

// Bounds on what one batch, and one owner, may have. OpenAI's, where it has them.
inline constexpr int64_t kMostBatchLines = 50000;
inline constexpr int64_t kMostUnfinishedBatches = 100;
inline constexpr int64_t kMostFinishedBatches = 1000;  // the oldest are forgotten
inline constexpr int64_t kMostFiles = 10000;
inline constexpr int64_t kBatchSeconds = 24 * 60 * 60;  // of "completion_window"

struct StoredFile {
  std::string id;     // "file-..."
  std::string owner;  // the name of an API key; empty without keys
  std::string name;   // as its client called it
  std::string purpose;
  int64_t bytes = 0;
  int64_t created_at = 0;  // Unix seconds, as all times here
  int64_t number = 0;      // files and batches that were made later have larger ones
};

enum class BatchStatus : uint8_t {
  kValidating,
  kFailed,
  kInProgress,
  kFinalizing,
  kCompleted,
  kExpired,
  kCancelling,
  kCancelled
};
inline constexpr size_t kBatchStatuses = 8;

// "validating", ...
const char* Name(BatchStatus status);
// Of all, in their order.
std::span<const char* const> BatchStatusNames();
// Whether nothing follows.
bool IsFinal(BatchStatus status);

// What keeps a batch from running.
struct BatchError {
  std::string code;
  std::string message;
  int64_t line = 0;   // of the input, from 1; 0: of none
  std::string param;  // the field; "": none
};

struct LineCounts {
  int64_t completed = 0;
  int64_t failed = 0;
  CallTokens tokens;  // of those that were completed
};

struct Batch {
  int64_t& at(BatchStatus when) { return times[static_cast<size_t>(when)]; }
  int64_t at(BatchStatus when) const { return times[static_cast<size_t>(when)]; }

  std::string id;     // "batch_..."
  std::string owner;  // as of StoredFile
  int64_t number = 0;
  std::string endpoint;
  std::string input_file;
  std::map<std::string, std::string> metadata;
  BatchStatus status = BatchStatus::kValidating;
  // Decided, and the files of the batch will grow no more, but are not where clients find them.
  std::optional<BatchStatus> outcome;
  std::array<int64_t, kBatchStatuses> times{};  // when it came to each status; 0: not yet
  int64_t expires_at = 0;
  int64_t total = 0;  // lines of the input; 0: not known yet
  LineCounts counts;
  std::string output_file, error_file;  // empty: none
  std::vector<BatchError> errors;
};

// As clients see them.
nlohmann::ordered_json FileJson(const StoredFile& file);
nlohmann::ordered_json BatchJson(const Batch& batch);
// As text; bytes that are no UTF-8 are replaced.
std::string DumpObject(const nlohmann::ordered_json& object);

// As they lie on the disk.
std::string WriteStoredFile(const StoredFile& file);
std::string WriteStoredBatch(const Batch& batch);
// Errors: kInvalidArgument for anything else.
absl::StatusOr<StoredFile> ReadStoredFile(const std::string& text);
absl::StatusOr<Batch> ReadStoredBatch(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BATCH_H_
