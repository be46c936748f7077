// What an encoder is fine-tuned for: data to learn, and data that judge what came of it.
#ifndef HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_TASK_H_
#define HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_TASK_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/train/run/run_file.h"

namespace hippodrome {

struct FinetuneFiles {
  std::string train;
  std::string dev;
};

// Immutable.
class FinetuneTask {
 public:
  virtual ~FinetuneTask() = default;

  virtual const std::string& name() const = 0;
  // Of its models.
  virtual EncoderHead head() const = 0;
  // Tokens of an input as usual, for a model with so many positions.
  virtual int64_t Length(int64_t positions) const = 0;
  // Sets objective and data.
  virtual void Describe(TrainingRun& run) const = 0;
  // What is reported, first what the BiGS paper reports, by which models are compared; higher is
  // better.
  virtual std::vector<std::string> Metrics() const = 0;
  // The report of `hippodrome eval` on the dev data. Errors: as of EncoderSession::Run().
  virtual absl::StatusOr<nlohmann::json> Judge(EncoderSession& session) const = 0;
};

// Reads the dev data. Errors, with the path: of reading. `task` must outlive it, and has data to
// train on.
absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeGlueFinetuneTask(const GlueTask& task,
                                                                   const FinetuneFiles& files);
absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeSquadFinetuneTask(const FinetuneFiles& files);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_TASK_H_
