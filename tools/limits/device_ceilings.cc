#include "tools/limits/device_ceilings.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/open_backend.h"

namespace hippodrome {
namespace {

constexpr int64_t kCopyBytes = int64_t{2} << 30;
constexpr int64_t kSide = 8192;
constexpr int kRuns = 5;

// Random values: products of zeros draw less power and run faster.
std::vector<float> RandomValues(int64_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

// Of y = x W^T with all sides kSide.
double ProductRate(Backend& b, DType weights, const std::vector<float>& values) {
  const HostMatrix host = {values.data(), DType::kF32, kSide, kSide};
  const auto w = b.PackLinear({&host, 1}, weights);
  const OwnedTensor x = b.NewActivations(kSide, kSide, weights);
  const OwnedTensor y = b.NewActivations(kSide, kSide, weights);
  b.Upload(values, x);
  b.Linear(x, *w, {}, y);  // chooses an algorithm
  b.Wait();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) b.Linear(x, *w, {}, y);
  b.Wait();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return kRuns * 2.0 * kSide * kSide * kSide / seconds.count();
}

}  // namespace

Ceilings MeasureDeviceCeilings(Backend& backend, DeviceYardsticks& yardsticks) {
  const std::vector<float> values = RandomValues(kSide * kSide);
  Ceilings ceilings;
  ceilings.read_bytes = 2 * static_cast<double>(kCopyBytes) / yardsticks.CopySeconds(kCopyBytes);
  ceilings.f32_flops = ProductRate(backend, DType::kF32, values);
  ceilings.bf16_flops = std::max(ProductRate(backend, DType::kBF16, values), ceilings.f32_flops);
  return ceilings;
}

absl::StatusOr<Machine> OpenMachine(DeviceChoice device, const CpuOptions& cpu) {
  Machine machine;
  HIPPODROME_ASSIGN_OR_RETURN(machine.backend, OpenBackend(device, cpu));
  if (machine.backend->name() != "cuda") {
    machine.name = MachineName();
    machine.measure_ceilings = [cpu](OfRuns which) { return MeasureCeilings(cpu, which); };
    machine.free_memory = FreeMemory;
    return machine;
  }
  machine.yardsticks = MakeDeviceYardsticks();
  if (machine.yardsticks == nullptr) return Unavailable("the CUDA backend has no yardsticks");
  machine.name = machine.yardsticks->device() + ", " + MachineName();
  machine.measure_ceilings = [b = machine.backend.get(),
                              yardsticks = machine.yardsticks](OfRuns) {  // nobody shares a device
    return MeasureDeviceCeilings(*b, *yardsticks);
  };
  return machine;
}

}  // namespace hippodrome
