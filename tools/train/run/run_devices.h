// The devices that a run uses.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_RUN_DEVICES_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_RUN_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/all_reduce.h"
#include "kernels/training_backend.h"
#include "tools/mpi/communicator.h"
#include "tools/train/run/run_file.h"
#include "tools/train/step/parameter_blocks.h"

namespace hippodrome {

struct RunDevices {
  std::vector<std::unique_ptr<TrainingBackend>> backends;  // at least one
  std::unique_ptr<AllReduce> all_reduce;                   // of all; null for one
  bool on_processor = false;              // one, that sums gradients in the order of GradientTree
  Communicator* ranks = nullptr;          // of this process and others; null for one process
  int64_t bucket_values = kBucketValues;  // that ranks exchange at a time
};

// As run.device and run.devices say. Where the number is left open and there is no NCCL, one, and a
// line on stderr that says so. With `ranks`, which call it together and must outlive what it gives,
// each has the processors of its machine that fall to it, or one of its devices. Errors:
// kUnavailable with the obstacle; kInvalidArgument where there are more ranks than micro-batches.
absl::StatusOr<RunDevices> OpenRunDevices(const TrainingRun& run, Communicator* ranks);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_RUN_DEVICES_H_
