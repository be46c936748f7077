#include "tools/limits/machine.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "kernels/cpu/base/thread_pool.h"
#include "tools/limits/ceilings.h"

namespace hippodrome {

Ceilings MeasureCeilings(int threads) {
  ThreadPool pool(threads);
  Ceilings ceilings{.threads = pool.threads()};
  ceilings.read_bytes = MeasureReadBandwidth(pool);
  ceilings.f32_flops = MeasureF32Rate(pool);
  ceilings.bf16_flops = std::max(MeasureBF16Rate(pool), ceilings.f32_flops);
  return ceilings;
}

Ceilings BetterOf(const Ceilings& a, const Ceilings& b) {
  return {std::max(a.threads, b.threads), std::max(a.read_bytes, b.read_bytes),
          std::max(a.f32_flops, b.f32_flops), std::max(a.bf16_flops, b.bf16_flops)};
}

std::string MachineName() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(in, line)) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace hippodrome
