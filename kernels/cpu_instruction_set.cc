#include "kernels/cpu_instruction_set.h"

#include <hwy/targets.h>

#include <cstdint>

namespace hippodrome {

const char* CpuInstructionSet() {
  // Bits of better targets are lower.
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);
}

}  // namespace hippodrome
