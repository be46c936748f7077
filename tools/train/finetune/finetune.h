// Fine-tunes an encoder at every point of a grid, and keeps the best model.
#ifndef HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_H_
#define HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"
#include "tools/train/finetune/finetune_grid.h"
#include "tools/train/finetune/finetune_task.h"

namespace hippodrome {

// Paths are absolute.
struct FinetuneOptions {
  std::string model;   // a directory: of a masked LM, or of a model that was tuned before
  std::string runs;    // a folder for a folder of each run
  std::string result;  // the directory of the best model
  FinetuneGrid grid;
  int64_t length = 0;       // tokens of an input; 0: as usual for the task
  int64_t micro_batch = 0;  // sequences at a time, divides each batch; 0: all of a batch
  int64_t patience = 3;     // epochs that are no better than the best, after which a run ends
  DType weights = DType::kF32;
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;  // 0: one per core
};

// Trains a model for each point and seed, as BiGS was fine-tuned: AdamW, a rate that rises for a
// tenth of the steps and falls to 0, dropout of 0.1, an evaluation after each epoch, of which the
// best one's parameters stay. Each is judged on the dev data, and the one with the highest first
// metric is copied to options.result.
//
// A run has a folder of its name in options.runs: run.json, from which `hippodrome train` makes the
// same model, what that writes, and in the end result.json, in place of checkpoints. Runs that have
// ended are not run again, one that was stopped goes on.
//
// Gives a report:
//   {"task", "model": where training began, "length", "weights", "patience",
//    "metrics": ["accuracy", ..],
//    "runs": [{"name", "rate", "weight_decay", "batch", "epochs", "seed", "steps": made,
//              "model_step": of the model, "seconds": of training, "dev": what eval reports,
//              or in place of these "error": why there is no model}, ..],
//    "points": [{"rate", .., "epochs", "seeds": n, "mean": {"accuracy": x, ..},
//                "deviation": {"accuracy": x, ..}}, ..],   the sample's; without it for one seed
//    "best": name of a run, "best_model": options.result}
// or nothing where a signal stopped it. Errors: of reading and of training; kFailedPrecondition for
// runs of other settings under the same names; kAborted where no run gave a model.
absl::StatusOr<std::optional<nlohmann::json>> Finetune(const FinetuneTask& task,
                                                       const FinetuneOptions& options);

// The report as tables on stderr.
void PrintFinetuneReport(const nlohmann::json& report);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_H_
