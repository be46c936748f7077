// seeded_faults NAME: runs the example with a fault in every order of threads. Ends with 0 where
// nothing is seen, with 1 where a result is wrong, with 2 where the emulator refuses; a sanitizer
// ends it in its own way.
#include <cmath>
#include <complex>
#include <cstdio>
#include <map>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/cuda_on_cpu/fft_example.cuh"

namespace hippodrome::cuda {
namespace {

using cuda_on_cpu::DeviceArray;

constexpr size_t kRows = 3;
constexpr size_t kPoints = kFftPoints;

std::vector<float2> RandomRows() {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float2> rows(kRows * kPoints);
  for (float2& x : rows) x = make_float2(uniform(generator), uniform(generator));
  return rows;
}

std::complex<double> FourierSum(const float2* x, size_t n) {
  std::complex<double> sum = 0;
  for (size_t t = 0; t < kPoints; ++t) {
    const double turns = static_cast<double>(n * t % kPoints) / static_cast<double>(kPoints);
    sum += std::complex<double>(x[t].x, x[t].y) * std::polar(1.0, -2 * std::numbers::pi * turns);
  }
  return sum;
}

struct Outputs {
  std::vector<float2> rows;
  std::vector<float> energy;
  float total;
};

// What is not a number is not near either.
bool AreRight(const std::vector<float2>& in, const Outputs& seen) {
  double total = 0;
  for (size_t row = 0; row < kRows; ++row) {
    double energy = 0;
    for (size_t n = 0; n < kPoints; ++n) {
      const std::complex<double> x = FourierSum(&in[row * kPoints], n);
      const float2 y = seen.rows[row * kPoints + n];
      if (!(std::abs(std::complex<double>(y.x, y.y) - x) < 1e-4)) return false;
      if (n < kWarp) energy += std::norm(x);
    }
    if (!(std::abs(seen.energy[row] - energy) < 1e-4 * energy)) return false;
    total += energy;
  }
  return std::abs(seen.total - total) < 1e-4 * total;
}

template <Fault kFault>
bool RunsRight() {
  const std::vector<float2> in = RandomRows();
  bool right = true;
  cuda_on_cpu::InEveryOrder([&] {
    const DeviceArray<float2> rows_in(in);
    const DeviceArray<float2> rows_out(in.size());
    const DeviceArray<float> energy(kRows);
    const DeviceArray<float> total(std::vector<float>{0});
    const FftArguments arguments = {rows_in.data(), rows_out.data(), energy.data(), total.data()};
    cuda_on_cpu::RunKernel(FftRows<kFault>, kRows, kFftThreads, kPoints * sizeof(float2),
                           arguments);
    right = right && AreRight(in, {rows_out.values(), energy.values(), total.values()[0]});
  });
  return right;
}

// In a template or an inline function AddressSanitizer would not guard the array.
__global__ void WriteBeyondShared(float* out) {
  __shared__ float numbers[kWarp];
  numbers[threadIdx.x + 1] = 1;
  __syncwarp();
  out[threadIdx.x] = numbers[threadIdx.x];
}

bool WritesBeyondShared() {
  const DeviceArray<float> out(kWarp);
  cuda_on_cpu::RunKernel(WriteBeyondShared, 1, kWarp, 0, out.data());
  return true;
}

bool ReadsDeviceMemoryOnTheHost() {
  const DeviceArray<float> x(std::vector<float>{1});
  return *x.data() == 1;
}

const std::map<std::string, bool (*)()> kFaults = {
    {"none", RunsRight<Fault::kNone>},
    {"no_barrier", RunsRight<Fault::kNoBarrier>},
    {"no_barrier_in_place", RunsRight<Fault::kNoBarrierInPlace>},
    {"no_wait", RunsRight<Fault::kNoWait>},
    {"read_beyond", RunsRight<Fault::kReadBeyond>},
    {"shared_beyond", WritesBeyondShared},
    {"dynamic_beyond", RunsRight<Fault::kDynamicBeyond>},
    {"divergent_barrier", RunsRight<Fault::kDivergentBarrier>},
    {"blocks_collide", RunsRight<Fault::kBlocksCollide>},
    {"no_warp_barrier", RunsRight<Fault::kNoWarpBarrier>},
    {"shuffle_for_barrier", RunsRight<Fault::kShuffleForBarrier>},
    {"host_reads_device_memory", ReadsDeviceMemoryOnTheHost},
};

}  // namespace
}  // namespace hippodrome::cuda

int main(int argc, char** argv) {
  const auto& faults = hippodrome::cuda::kFaults;
  const auto fault = faults.find(argc == 2 ? argv[1] : "");
  if (fault == faults.end()) {
    std::fprintf(stderr, "seeded_faults NAME\n");
    return 3;
  }
  try {
    if (fault->second()) return 0;
    std::fprintf(stderr, "a result is wrong\n");
    return 1;
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
