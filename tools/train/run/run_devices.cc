#include "tools/train/run/run_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/base/status.h"
#include "engine/open_backend.h"
#include "tools/mpi/collectives.h"

namespace hippodrome {
namespace {

absl::Status TooMany(const TrainingRun& run, const std::string& found) {
  return Unavailable(fmt::format("devices is {}, but {}", run.devices, found));
}

// Devices 0 to `count` - 1, of which the first is there.
absl::Status AddDevices(int64_t count, RunDevices& devices) {
  std::vector<TrainingBackend*> backends = {devices.backends[0].get()};
  for (int64_t i = 1; i < count; ++i) {
    ChosenBackend chosen = MakeCudaBackend(static_cast<int>(i));
    if (chosen.backend == nullptr) return Unavailable(chosen.obstacle);
    backends.push_back(chosen.backend.get());
    devices.backends.push_back(std::move(chosen.backend));
  }
  ChosenAllReduce chosen = MakeCudaAllReduce(backends);
  if (chosen.all_reduce == nullptr) return Unavailable(chosen.obstacle);
  devices.all_reduce = std::move(chosen.all_reduce);
  return absl::OkStatus();
}

// One device of each rank.
absl::Status JoinDevices(Communicator& ranks, RunDevices& devices) {
  std::string id;
  absl::Status status;
  if (ranks.rank() == 0) {
    std::string obstacle;
    id = NewAllReduceId(obstacle);
    if (id.empty()) status = Unavailable(obstacle);
  }
  HIPPODROME_RETURN_IF_ERROR(Agree(ranks, status));
  const std::vector<std::string> ids = AllGather(ranks, id);
  TrainingBackend* backend = devices.backends[0].get();
  ChosenAllReduce chosen =
      MakeCudaAllReduce(*backend, {.id = ids[0], .rank = ranks.rank(), .size = ranks.size()});
  HIPPODROME_RETURN_IF_ERROR(
      Agree(ranks, chosen.all_reduce == nullptr ? Unavailable(chosen.obstacle) : absl::OkStatus()));
  devices.all_reduce = std::move(chosen.all_reduce);
  return absl::OkStatus();
}

absl::StatusOr<RunDevices> OpenOfRank(const TrainingRun& run, Communicator& ranks) {
  if (const int64_t parts = run.batch / run.micro_batch; ranks.size() > parts) {
    return InvalidArgument(fmt::format(
        "{} ranks, but {} micro-batches in a batch; expected one at least for each rank",
        ranks.size(), parts));
  }
  const LocalRanks local = FindLocalRanks(ranks);
  RunDevices devices;
  devices.ranks = &ranks;
  const int64_t present = run.device == DeviceChoice::kCpu ? 0 : CountCudaDevices();
  // All compute in the same way.
  const bool cuda = !AnyOf(ranks, present < local.count);
  if (!cuda && run.device == DeviceChoice::kCuda) {
    return Unavailable(fmt::format("{} ranks on {}, where {} CUDA devices can be used", local.count,
                                   ranks.host(), present));
  }
  if (!cuda) {
    const int threads = run.threads > 0 ? run.threads : local.processors;
    devices.backends.push_back(MakeCpuBackend({.threads = threads}));
    devices.on_processor = true;
    return devices;
  }
  if (run.devices > 1) return TooMany(run, "each rank uses one");
  if (run.shard_optimizer) return Unavailable("shard_optimizer is true, but devices do not shard");
  ChosenBackend chosen = MakeCudaBackend(local.index);
  HIPPODROME_RETURN_IF_ERROR(
      Agree(ranks, chosen.backend == nullptr ? Unavailable(chosen.obstacle) : absl::OkStatus()));
  devices.backends.push_back(std::move(chosen.backend));
  HIPPODROME_RETURN_IF_ERROR(JoinDevices(ranks, devices));
  return devices;
}

}  // namespace

absl::StatusOr<RunDevices> OpenRunDevices(const TrainingRun& run, Communicator* ranks) {
  if (ranks != nullptr) return OpenOfRank(run, *ranks);
  RunDevices devices;
  HIPPODROME_ASSIGN_OR_RETURN(auto first,
                              OpenTrainingBackend(run.device, {.threads = run.threads}));
  const bool cpu = first->name() == "cpu";
  devices.backends.push_back(std::move(first));
  if (cpu) {
    devices.on_processor = true;
    return run.devices > 1 ? TooMany(run, "training on the CPU uses one device")
                           : absl::StatusOr<RunDevices>(std::move(devices));
  }
  const int64_t present = CountCudaDevices();
  if (run.devices > present) return TooMany(run, fmt::format("{} can be used", present));
  const int64_t count =
      run.devices > 0 ? run.devices : std::min(present, run.batch / run.micro_batch);
  if (count <= 1) return devices;
  const absl::Status added = AddDevices(count, devices);
  if (!added.ok()) {
    if (run.devices > 0) return added;
    std::fprintf(stderr, "train: one of %d devices: %s\n", static_cast<int>(count),
                 Message(added).c_str());
    devices.backends.resize(1);
  }
  devices.backends[0]->BindThread();
  return devices;
}

}  // namespace hippodrome
