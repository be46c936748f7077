#include "tools/bench/bench_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/fft_conv.h"
#include "tools/bench/best_time.h"
#include "tools/bench/fftw_convolution.h"

namespace hippodrome {
namespace {

constexpr int64_t kChannels = 768;
constexpr int kRounds = 7;

BenchResult NanosecondsPerPoint(const std::string& name, int64_t length, double seconds,
                                double least_seconds) {
  const double scale = 1e9 / static_cast<double>(kChannels * length);
  return {.name = name,
          .length = length,
          .value = seconds * scale,
          .unit = "ns/point",
          .limit = least_seconds * scale,
          .fraction = least_seconds / seconds};
}

// The arithmetic of two complex transforms and the product between, or x, y and the spectra once
// through memory.
double LeastSeconds(int64_t length, const Ceilings& ceilings) {
  const auto points = static_cast<double>(kChannels * length);
  const double flops = (8.5 * std::log2(static_cast<double>(length)) + 11) * points;
  const double bytes = 16 * points;
  return std::max(flops / ceilings.f32_flops, bytes / ceilings.read_bytes);
}

// Kernels that fade, different for every channel.
std::vector<double> FadingKernels(int64_t length) {
  std::vector<double> kernels;
  for (int64_t c = 0; c < kChannels; ++c) {
    const double rate = std::exp(-0.001 * static_cast<double>(1 + c % 7));
    double value = 1;
    for (int64_t t = 0; t < length; ++t) {
      kernels.push_back(value);
      value *= t % 2 == 0 ? rate : -rate;
    }
  }
  return kernels;
}

void BenchOneLength(int64_t length, const Ceilings& ceilings, std::vector<BenchResult>& results) {
  const std::vector<double> kernels = FadingKernels(length);
  const cpu::FftConv convolution(kernels, kChannels, length);
  const auto peer = MakeFftwConvolution(kernels, kChannels, length);
  ThreadPool pool(1);
  const std::vector<float> input(static_cast<size_t>(kChannels * length), 0.5f);
  std::vector<float> output(input.size());
  const OwnedTensor x = cpu::NewMatrix(length, kChannels, DType::kF32);
  const OwnedTensor y = cpu::NewMatrix(length, kChannels, DType::kF32);
  cpu::CopyIn(input, x);
  BestTime own;
  BestTime other;
  for (int round = 0; round < kRounds; ++round) {
    own.Run([&] { convolution.Apply(pool, x, y); });
    if (peer != nullptr) other.Run([&] { peer->Apply(input.data(), output.data()); });
  }
  const double least = LeastSeconds(length, ceilings);
  results.push_back(NanosecondsPerPoint("fft_conv", length, own.seconds(), least));
  if (peer == nullptr) return;
  results.push_back(NanosecondsPerPoint("fft_conv fftw", length, other.seconds(), least));
  results.push_back({.name = "fft_conv / fftw",
                     .length = length,
                     .value = own.seconds() / other.seconds(),
                     .unit = "of time"});
}

}  // namespace

std::vector<BenchResult> BenchLongConvolution(const Ceilings& one_thread) {
  if (MakeFftwConvolution({}, 0, 1) == nullptr) {
    std::printf("fft_conv is not compared: FFTW (fftw3f) was missing when this was built\n");
  }
  std::vector<BenchResult> results;
  for (int64_t length = 512; length <= 16384; length *= 2) {
    BenchOneLength(length, one_thread, results);
  }
  return results;
}

std::vector<BenchResult> BenchKernels(const Ceilings& ceilings, const CpuOptions& cpu) {
  const Ceilings one_thread = ceilings.threads == 1 ? ceilings : MeasureCeilings({.threads = 1});
  std::vector<BenchResult> results = BenchLongConvolution(one_thread);
  const std::vector<BenchResult> layer = BenchH3Layer(ceilings, cpu);
  results.insert(results.end(), layer.begin(), layer.end());
  return results;
}

}  // namespace hippodrome
