#include "tools/device_model/launch_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

// H100, H200: copies, cuBLASLt's products and their L2 sectors as measured. A100: copies and
// products as is known of them; of its L2's 5,120 bytes a cycle the same part that the H100 reaches
// of its own. `mma` is two thirds of what the tensor cores of an H100 do, all of those of an A100.
// An early start is what others measured between two empty kernels of a graph on an H100.
constexpr DeviceRates kDevices[] = {
    {.name = "a100",
     .title = "NVIDIA A100 80GB",
     .multiprocessors = 108,
     .clock = 1.35e9,
     .dram_bytes = 1.75e12,
     .l2_bytes = 5.5e12,
     .product_flops = 270e12,
     .f32_flops = 18e12,
     .mma = 270e12 / 4096},
    {.name = "h100",
     .title = "NVIDIA H100 80GB",
     .multiprocessors = 132,
     .clock = 1.75e9,
     .dram_bytes = 3.03e12,
     .l2_bytes = 7.0e12,
     .product_flops = 797e12,
     .f32_flops = 51e12,
     .mma = 660e12 / 4096,
     .early_start = 0.96e-6},
    {.name = "h200",
     .title = "NVIDIA H200 141GB",
     .multiprocessors = 132,
     .clock = 1.75e9,
     .dram_bytes = 4.3e12,
     .l2_bytes = 7.0e12,
     .product_flops = 790e12,
     .f32_flops = 51e12,
     .mma = 660e12 / 4096,
     .early_start = 0.96e-6},
};

constexpr double kSector = 32;
constexpr double kLine = 128;  // of L1 takes as long as a wavefront
constexpr double kSchedulers = 4;
// Fitted, as is kLaunchStart: a logarithmic deviation of 17 % over the launches of our kernels in
// gpu-counters.csv.
constexpr double kDependent = 6;  // cycles
constexpr double kPower = 1.75;

double InstructionSeconds(const LaunchCounts& c, const DeviceRates& rates) {
  const double at_once = rates.multiprocessors * static_cast<double>(c.resident);
  const double waves = std::ceil(c.blocks / at_once);
  const double blocks = std::min<double>(c.resident, std::ceil(c.blocks / rates.multiprocessors));
  const double of_a_scheduler = blocks * c.warps / kSchedulers;
  const double of_a_warp = c.instructions / (c.blocks * c.warps);
  return waves * of_a_warp * std::max(of_a_scheduler, kDependent) / rates.clock;
}

}  // namespace

absl::StatusOr<DeviceRates> RatesOf(std::string_view name) {
  const auto* const found = std::ranges::find(kDevices, name, &DeviceRates::name);
  if (found != std::end(kDevices)) return *found;
  return InvalidArgument("no model of a device '" + std::string(name) +
                         "', expected a100, h100 or h200");
}

Ceilings CeilingsOf(const DeviceRates& rates) {
  return {.read_bytes = rates.dram_bytes,
          .f32_flops = rates.f32_flops,
          .bf16_flops = rates.product_flops};
}

LaunchTime TimeOf(const LaunchCounts& c, const DeviceRates& rates) {
  const double lines = c.l1_sectors * kSector / kLine + c.wavefronts;
  const std::array<std::pair<std::string_view, double>, 5> terms = {
      {{"DRAM", c.dram_bytes / rates.dram_bytes},
       {"L2", c.l2_sectors * kSector / rates.l2_bytes},
       {"L1 and shared memory", lines / (rates.multiprocessors * rates.clock)},
       {"tensor cores", c.mma / rates.mma + c.library_flops / rates.product_flops},
       {"instructions", InstructionSeconds(c, rates)}}};
  double sum = 0;
  for (const auto& [name, seconds] : terms) sum += std::pow(seconds, kPower);
  const auto longest =
      *std::ranges::max_element(terms, {}, &std::pair<std::string_view, double>::second);
  return {.seconds = kLaunchStart + std::pow(sum, 1 / kPower),
          .bound_by = longest.second < kLaunchStart ? "latency" : longest.first};
}

}  // namespace hippodrome
