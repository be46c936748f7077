// Speed of training steps of a language model with random weights and tokens.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_TRAIN_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_TRAIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/limits/device_ceilings.h"
#include "tools/mpi/communicator.h"

namespace hippodrome {

struct TrainBenchmark {
  H3Config config;
  std::vector<DType> weights = {DType::kBF16, DType::kF32};  // precisions of products
  int64_t length = 256;                                      // tokens of each sequence
  int64_t batch = 16;                                        // sequences of a step
  int64_t micro_batch = 16;                                  // sequences at a time
  int repeats = 3;  // steps of each precision, interleaved; the best counts
};

// "train": forward, backward and AdamW of a batch, in tokens per second. Errors: of making the
// model; kUnavailable for a backend that does not train.
absl::StatusOr<BenchReport> BenchTrain(Machine& machine, const TrainBenchmark& benchmark);

// The same of one process, "train one process" on `machine`, and of all ranks together, "train
// ranks", on `threads` threads of each, in turns, while the others sleep; of which "scaling" is the
// latter over the former for each machine, and "communication" the part of the latter's time in
// which rank 0 sends, receives and waits. On processors; called by all ranks, and rank 0 reports.
// Errors: as above, which all come to; kInvalidArgument for more ranks than micro-batches.
absl::StatusOr<BenchReport> BenchTrainOnRanks(Machine& machine, const TrainBenchmark& benchmark,
                                              Communicator& ranks, int threads);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_TRAIN_H_
