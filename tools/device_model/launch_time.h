// How long a device takes for what a kernel asks of it: a model of time, fitted to what an H100
// took (tests/benchmarks/gpu-counters.csv).
#ifndef HIPPODROME_TOOLS_DEVICE_MODEL_LAUNCH_TIME_H_
#define HIPPODROME_TOOLS_DEVICE_MODEL_LAUNCH_TIME_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/limits/machine.h"

namespace hippodrome {

// What a device reaches, per second.
struct DeviceRates {
  std::string_view name;   // "h100"
  std::string_view title;  // "NVIDIA H100 80GB"
  int multiprocessors = 0;
  double clock = 0;          // cycles, under load
  double dram_bytes = 0;     // of large copies
  double l2_bytes = 0;       // of large products
  double product_flops = 0;  // of the library's large products, bf16
  double f32_flops = 0;      // the same, f32
  double mma = 0;            // m16n8k16 of bf16, without wgmma
  double early_start = 0;    // seconds that programmatic dependent launch takes from a launch
};

// "a100", "h100" or "h200". Errors: kInvalidArgument, with these.
absl::StatusOr<DeviceRates> RatesOf(std::string_view name);

// As if they had been measured.
Ceilings CeilingsOf(const DeviceRates& rates);

// Seconds of every launch in which its blocks do nothing yet, or no more.
inline constexpr double kLaunchStart = 3e-6;

// What one launch asks for.
struct LaunchCounts {
  double dram_bytes = 0;  // that must move at least
  double l2_sectors =
      0;  // of 32 bytes: each once for each block that reads it, and what is written
  double l1_sectors = 0;    // of all requests
  double wavefronts = 0;    // of shared memory
  double instructions = 0;  // of warps
  double mma = 0;
  double library_flops =
      0;  // of a product of the library, which has nothing of the above but bytes
  double blocks = 1;
  int warps = 1;     // of a block
  int resident = 1;  // blocks of a multiprocessor at once
};

struct LaunchTime {
  double seconds = 0;
  std::string_view bound_by;  // the largest term, "latency" where no term is as long as the start
};

// Each term is the time that one part of the device needs, if nothing else were to do: DRAM, L2, L1
// with shared memory, tensor cores, and instructions: a scheduler has one of each of its warps in
// kDependent cycles at most, so few warps at a time take longer, and the last wave of blocks as
// long as a full one. A launch takes start + (sum of term^p)^(1/p), between the largest term and
// the sum of all. The same launches took 0.8 to 1.4 times as long on an H100, from 3 to 735 us.
LaunchTime TimeOf(const LaunchCounts& counts, const DeviceRates& rates);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_DEVICE_MODEL_LAUNCH_TIME_H_
