// One of the runs of fine-tuning.
#ifndef HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_RUN_H_
#define HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_RUN_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/train/finetune/finetune.h"

namespace hippodrome {

// Makes the runs of a task. Not thread-safe.
class FinetuneRunner {
 public:
  // Errors: of reading the model's configuration. `task` and `options` must outlive it.
  static absl::StatusOr<FinetuneRunner> Create(const FinetuneTask& task,
                                               const FinetuneOptions& options);

  int64_t length() const { return length_; }
  // The run's member of "runs" in the report; nothing where a signal stopped it. Errors: as of
  // Finetune(), but for losses that are not finite, which the member tells.
  absl::StatusOr<std::optional<nlohmann::json>> Run(const FinetunePoint& point, int64_t seed);

 private:
  FinetuneRunner(const FinetuneTask& task, const FinetuneOptions& options)
      : task_(task), options_(options) {}

  // Without what depends on the number of batches.
  TrainingRun Settings(const FinetunePoint& point) const;
  // Of an epoch.
  absl::StatusOr<int64_t> Batches(const FinetunePoint& point);
  absl::StatusOr<TrainingRun> Plan(const FinetunePoint& point, int64_t seed,
                                   const std::string& folder);
  // The members that tell how it went; nothing where a signal stopped it.
  static absl::StatusOr<std::optional<nlohmann::json>> Train(const TrainingRun& run);
  absl::StatusOr<nlohmann::json> Judge(const std::string& model) const;

  const FinetuneTask& task_;
  const FinetuneOptions& options_;
  std::string model_checksum_;
  int64_t positions_ = 0;  // of the model
  int64_t length_ = 0;
  std::map<int64_t, int64_t> batches_;  // of an epoch, by their size
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_RUN_H_
