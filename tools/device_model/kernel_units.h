// What each kernel asks of a device for a unit of its work, counted without one, so that the counts
// of any shape follow.
#ifndef HIPPODROME_TOOLS_DEVICE_MODEL_KERNEL_UNITS_H_
#define HIPPODROME_TOOLS_DEVICE_MODEL_KERNEL_UNITS_H_

#include <span>
#include <string_view>

#include "tools/device_model/launch_time.h"

namespace hippodrome {

struct KernelUnits {
  std::string_view kernel;  // as it is launched, and what of it: "h3_scan"
  std::string_view unit;    // "token and channel"
  // Under the emulator; `kernel_counts --units` prints them, kernel_units_test compares them.
  double l2_sectors;
  double l1_sectors;
  double wavefronts;
  double mma;
  // Of warps: those that the H100 counted (gpu-counters.csv), else in the compiled code
  // (gpu-static-facts.csv): of the whole kernel, or of its loop.
  double block_instructions;  // of each warp of a block, whatever that has to do
  double instructions;        // of all warps for a unit
  int warps;                  // of a block
  int resident;               // blocks of a multiprocessor, by registers and shared memory
};

// All that serving uses with weights of bf16, int8 and int4, and the gated convolution.
std::span<const KernelUnits> AllKernelUnits();
// REQUIRES: there is one of that name.
const KernelUnits& UnitsOf(std::string_view kernel);

// Of a launch of `units` units in `blocks` blocks that moves `dram_bytes` at least.
LaunchCounts CountsOf(const KernelUnits& kernel, double units, double blocks, double dram_bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_DEVICE_MODEL_KERNEL_UNITS_H_
