#include "engine/open_backend.h"

#include <utility>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(DeviceChoice device, int threads,
                                                     std::string* obstacle) {
  HIPPODROME_ASSIGN_OR_RETURN(auto backend, OpenTrainingBackend(device, threads, obstacle));
  return std::unique_ptr<Backend>(std::move(backend));
}

absl::StatusOr<std::unique_ptr<TrainingBackend>> OpenTrainingBackend(DeviceChoice device,
                                                                     int threads,
                                                                     std::string* obstacle) {
  ChosenBackend chosen = MakeBackend(device, {.threads = threads});
  if (obstacle != nullptr) *obstacle = chosen.obstacle;
  if (chosen.backend == nullptr) {
    return Unavailable(chosen.obstacle + "; use --device cpu or auto");
  }
  return std::move(chosen.backend);
}

}  // namespace hippodrome
