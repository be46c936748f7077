#include "tools/device_model/modelled_machine.h"

#include <memory>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/device_model/modelled_backend.h"

namespace hippodrome {

absl::StatusOr<Machine> OpenModelledMachine(std::string_view device) {
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceRates rates, RatesOf(device));
  auto backend = std::make_unique<ModelledBackend>(rates);
  Machine machine;
  machine.name = std::string(rates.title) + ", predicted";
  machine.measure_ceilings = [rates](OfRuns) { return CeilingsOf(rates); };
  machine.yardsticks = MakeModelledYardsticks(rates);
  machine.clock = [b = backend.get()] { return b->seconds(); };
  machine.seconds_by_bound = [b = backend.get()] { return b->seconds_by_bound(); };
  machine.backend = std::move(backend);
  return machine;
}

}  // namespace hippodrome
