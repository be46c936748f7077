// What a device can do at best, measured through its backend.
#ifndef HIPPODROME_TOOLS_LIMITS_DEVICE_CEILINGS_H_
#define HIPPODROME_TOOLS_LIMITS_DEVICE_CEILINGS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/make_backend.h"
#include "tools/limits/clock.h"
#include "tools/limits/machine.h"

namespace hippodrome {

// The rates of large square products and of a large copy, read and written bytes counted together.
Ceilings MeasureDeviceCeilings(Backend& backend, DeviceYardsticks& yardsticks);

// What a benchmark runs on.
struct Machine {
  std::unique_ptr<Backend> backend;
  std::string name;
  std::function<Ceilings(OfRuns)> measure_ceilings;
  std::shared_ptr<DeviceYardsticks> yardsticks;  // of a device, else null
  Clock clock = SteadySeconds;                   // of the work of the backend
  // Of a device that is modelled: the seconds of its clock by what they went to and what bound
  // that. Else empty.
  std::function<std::map<std::string, double>()> seconds_by_bound;
  // Bytes that models can be made in. Devices know: they refuse what they have no room for.
  std::function<int64_t()> free_memory = [] { return std::numeric_limits<int64_t>::max(); };
};

// kUnavailable when the device cannot be had.
absl::StatusOr<Machine> OpenMachine(DeviceChoice device, const CpuOptions& cpu);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_DEVICE_CEILINGS_H_
