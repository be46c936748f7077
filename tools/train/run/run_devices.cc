#include "tools/train/run/run_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/base/status.h"
#include "engine/open_backend.h"

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

}  // namespace

absl::StatusOr<RunDevices> OpenRunDevices(const TrainingRun& run) {
  RunDevices devices;
  HIPPODROME_ASSIGN_OR_RETURN(auto first,
                              OpenTrainingBackend(run.device, {.threads = run.threads}));
  const bool cpu = first->name() == "cpu";
  devices.backends.push_back(std::move(first));
  if (cpu) {
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
