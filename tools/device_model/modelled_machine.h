// A device that is not there, for benchmarks.
#ifndef HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_MACHINE_H_
#define HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_MACHINE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

// On a ModelledBackend; its clock goes by what is predicted. Errors: of RatesOf().
absl::StatusOr<Machine> OpenModelledMachine(std::string_view device);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_MACHINE_H_
