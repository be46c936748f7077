// What `hippodrome train` is asked to do: the run file, a JSON object.
//
//   {"output": "DIR",
//    "model": {"config": {..}} or {"from": "DIR", "config": {..}, "positions": n},
//    "initialization": {"measure": "diag-lin", "range": 0.02, "scaling": "hippo"},
//    "tokenizer": "DIR",
//    "objective": "causal_lm", ..,
//    "data": {"train": "FILE" or ["FILE", ..], "valid": the same, "columns": {..}, ..},
//    "length": 256, "batch": 16, "micro_batch": 4, "steps": 10000 or "epochs": 3,
//    "optimizer": {..}, "schedule": {..},
//    "dropout": {"embedding": 0.1, "attention": 0.1, "head": 0.1, "tokens": 0.1},
//    "weights": "bf16", "recompute": false, "seed": 0,
//    "threads": 0, "device": "auto", "devices": 0, "shard_optimizer": false,
//    "checkpoint_every": 1000, "evaluate_every": 0, "log_every": 10,
//    "early_stopping": {"patience": 3}}
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"
#include "tools/train/run/schedule.h"
#include "tools/train/step/parameter_groups.h"

namespace hippodrome {

enum class Objective : uint8_t {
  kCausalLm,
  kMaskedLm,
  kClassification,
  kRegression,
  kTokenClassification,
  kQuestionAnswering,
  kInductionHead,
  kAssociativeRecall,
};

// The word of the run file, "causal_lm".
const char* Name(Objective objective);
// Whether examples are made up rather than read: kInductionHead and kAssociativeRecall.
bool IsSynthetic(Objective objective);

// Where the parameters begin.
struct StartingModel {
  std::string from;       // a model directory; empty: random parameters
  std::string config;     // JSON: of a new model, or the keys that override those of `from`; or ""
  int64_t positions = 0;  // rows to which the position table of `from` grows; 0: stays
};

// The distribution of random parameters.
struct Initialization {
  std::string measure = "diag-lin";  // of A in decoders: also diag-inv, diag, diag-legs
  double range = 0.02;               // deviation of matrices and embeddings
  std::string scaling = "hippo";     // of A in encoders: also lin, inv
};

// A column of a table: its place from 0, or its name in the first line.
using DataColumn = std::variant<int64_t, std::string>;

struct DataFiles {
  std::vector<std::string> train;  // files; none for synthetic objectives
  std::vector<std::string> valid;  // may be empty
  // kClassification, kRegression and kTokenClassification:
  std::optional<DataColumn> text, pair, label;
  bool header = false;              // the first line of each file names the columns
  std::vector<std::string> labels;  // in the order of their ids; empty: those of the model
  // kClassification: what the model calls the labels; empty: as they stand in the data.
  std::vector<std::string> classes;
  // kClassification and kRegression: as in TableLayout.
  bool skip_broken = false;
  std::string unlabelled;
  // kInductionHead and kAssociativeRecall:
  int64_t vocabulary = 0;
  int64_t sequence = 0;  // tokens before the prefix that asks
};

struct TrainingDropout {
  double embedding = 0;
  double attention = 0;  // of decoders: of the weights of attention
  double head = 0;
  double tokens = 0;  // of classification and regression: tokens of the input become [MASK]
};

struct TrainingRun {
  std::string output;
  StartingModel model;
  Initialization initialization;
  std::string tokenizer;  // a directory; empty: none
  Objective objective = Objective::kCausalLm;
  DataFiles data;
  int64_t length = 0;       // tokens per sequence; of synthetic objectives: of their inputs
  int64_t batch = 0;        // sequences per step
  int64_t micro_batch = 0;  // sequences at a time, on one device; divides batch
  int64_t steps = 0;        // 0: `epochs` says how long
  int64_t epochs = 0;       // 0: `steps` says how long
  OptimizerOptions optimizer;
  Schedule schedule;
  TrainingDropout dropout;
  DType weights = DType::kF32;  // precision of products
  bool recompute = false;       // compute a layer's activations again instead of keeping them
  uint64_t seed = 0;
  int threads = 0;  // 0: one per core
  DeviceChoice device = DeviceChoice::kAuto;
  // CUDA devices that share the micro-batches of each step, at most one for each; gradients are
  // summed by NCCL. 0: as many as there are. CUDA_VISIBLE_DEVICES chooses among them.
  int64_t devices = 0;
  // Whether each of several processes keeps the moments of a part of the parameters alone, and
  // updates that part for all.
  bool shard_optimizer = false;
  int64_t checkpoint_every = 1000;  // steps; 0: only at the end, as for the next
  int64_t evaluate_every = 0;
  int64_t log_every = 10;
  // Early stopping: the run ends after so many evaluations in a row that are no better than the
  // best, and its model is that of the best evaluation: of the highest accuracy where the objective
  // has one, else of the lowest loss, the first among equals. 0: the run goes on to its end, and
  // its model is that of the last step.
  int64_t patience = 0;
  // Of everything in the file that bears on the result by more than the order of sums: not of
  // output, device, devices, threads, shards, and how often to write what, but of how often to
  // evaluate where that may end the run. A run is resumed only with the same.
  std::string fingerprint;
};

// Paths that are relative in the file are taken as relative to `directory`. Errors:
// kInvalidArgument naming the field, its value and what was expected; unknown fields are errors,
// except inside model.config.
absl::StatusOr<TrainingRun> ParseTrainingRun(const std::string& json_text,
                                             const std::string& directory);

// Reads the file at `path`, with paths relative to its folder, which become absolute. Errors: as
// above with the path, or kNotFound.
absl::StatusOr<TrainingRun> ReadTrainingRun(const std::string& path);

// A run file from which ParseTrainingRun() gives `run` again, but for the fingerprint; every
// default is spelt out.
std::string ToJson(const TrainingRun& run);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_H_
