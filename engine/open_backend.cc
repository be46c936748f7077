#include "engine/open_backend.h"

#include <utility>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(DeviceChoice device, const CpuOptions& cpu,
                                                     std::string* obstacle) {
  HIPPODROME_ASSIGN_OR_RETURN(auto backend, OpenTrainingBackend(device, cpu, obstacle));
  return std::unique_ptr<Backend>(std::move(backend));
}

absl::StatusOr<std::unique_ptr<TrainingBackend>> OpenTrainingBackend(DeviceChoice device,
                                                                     const CpuOptions& cpu,
                                                                     std::string* obstacle) {
  ChosenBackend chosen = MakeBackend(device, cpu);
  if (obstacle != nullptr) *obstacle = chosen.obstacle;
  if (chosen.backend == nullptr) {
    return Unavailable(chosen.obstacle + "; use --device cpu or auto");
  }
  return std::move(chosen.backend);
}

}  // namespace hippodrome
