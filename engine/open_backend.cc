#include "engine/open_backend.h"

#include <utility>

#include "engine/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(DeviceChoice device, int threads) {
  ChosenBackend chosen = MakeBackend(device, {.threads = threads});
  if (chosen.backend == nullptr) {
    return Unavailable(chosen.obstacle + "; use --device cpu or auto");
  }
  return std::move(chosen.backend);
}

}  // namespace hippodrome
