// The machine that a benchmark runs on, and what it can do at best, measured, so that every rate
// can be told as a fraction of it.
#ifndef HIPPODROME_TOOLS_LIMITS_MACHINE_H_
#define HIPPODROME_TOOLS_LIMITS_MACHINE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/make_backend.h"

namespace hippodrome {

// Rates of `threads` threads together; or of a device, threads = 0, see device_ceilings.h.
struct Ceilings {
  int threads = 0;
  double read_bytes = 0;  // per second, from memory
  double f32_flops = 0;   // per second
  double bf16_flops = 0;  // per second; those of f32 where the processor has no bf16 product
  double int8_flops = 0;  // per second; those of f32 where it has no product of bytes
};

// Of several short runs of a yardstick. Where neighbours share the memory, its bursts are faster
// than what it sustains: the best belongs beside the best of what is measured, the median beside
// medians.
enum class OfRuns : uint8_t { kBest, kMedian };

// Takes about a third of a second.
Ceilings MeasureCeilings(const CpuOptions& cpu, OfRuns which = OfRuns::kBest);

// The larger of each rate: the machine is shared, so the best of several measurements is nearest to
// what it can do.
Ceilings BetterOf(const Ceilings& a, const Ceilings& b);

// The middle one, or the mean of the two in the middle. REQUIRES: there are some.
double Median(std::vector<double> values);
// The median of each rate. REQUIRES: there are some.
Ceilings MedianOf(std::span<const Ceilings> all);

// Bytes that programs can still get, as the system says.
int64_t FreeMemory();

// Processor and cores, as the system names them.
std::string MachineName();

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_MACHINE_H_
