#include "kernels/cuda/bench/yardsticks.h"

#include <cmath>
#include <vector>

#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/conv/gated_conv.h"

namespace hippodrome::cuda {
namespace {

constexpr int kWarmUps = 2;
constexpr int kRuns = 5;

// Time between two points of the stream.
class Stopwatch {
 public:
  explicit Stopwatch(Device& device) : device_(device) {
    device_.Note(cudaEventCreate(&begin_), "timing");
    device_.Note(cudaEventCreate(&end_), "timing");
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Mean seconds of a run of `work`.
  template <typename Work>
  double Time(const Work& work) {
    for (int i = 0; i < kWarmUps; ++i) work();
    device_.Note(cudaEventRecord(begin_, device_.stream()), "timing");
    for (int i = 0; i < kRuns; ++i) work();
    device_.Note(cudaEventRecord(end_, device_.stream()), "timing");
    device_.Finish("timing");
    float milliseconds = 0;
    device_.Note(cudaEventElapsedTime(&milliseconds, begin_, end_), "timing");
    return 1e-3 * milliseconds / kRuns;
  }

 private:
  Device& device_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Kernels that fade, different for every channel.
std::vector<double> FadingKernels(int64_t channels, int64_t points) {
  std::vector<double> kernels(static_cast<size_t>(channels * points));
  for (int64_t c = 0; c < channels; ++c) {
    const double rate = std::exp(-0.001 * static_cast<double>(1 + c % 7));
    double value = 1;
    for (int64_t t = 0; t < points; ++t, value *= rate) {
      kernels[static_cast<size_t>(c * points + t)] = value;
    }
  }
  return kernels;
}

class CudaYardsticks final : public DeviceYardsticks {
 public:
  std::string device() const override {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return "unknown";
    return properties.name;
  }

  double CopySeconds(int64_t bytes) override {
    const auto from = AllocateZeroed(device_, static_cast<size_t>(bytes));
    const auto to = AllocateZeroed(device_, static_cast<size_t>(bytes));
    return Stopwatch(device_).Time([&] {
      device_.Note(cudaMemcpyAsync(to.get(), from.get(), static_cast<size_t>(bytes),
                                   cudaMemcpyDeviceToDevice, device_.stream()),
                   "copy");
    });
  }

  std::optional<double> GatedConvSeconds(Convolution convolution, int64_t sequences,
                                         int64_t channels, int64_t points) override {
    const bool fused = convolution == Convolution::kFused;
    if (fused && points > kLongestFusedTransform) return std::nullopt;
    const std::vector<double> kernels = FadingKernels(channels, points);
    const auto conv = fused ? MakeFusedGatedConv(device_, kernels, channels, points, DType::kBF16)
                            : MakeCufftGatedConv(device_, kernels, channels, points);
    if (conv == nullptr) return std::nullopt;
    const int64_t rows = sequences * channels;
    const OwnedTensor k = NewMatrix(device_, rows, points, DType::kBF16);
    const OwnedTensor v = NewMatrix(device_, rows, points, DType::kBF16);
    const OwnedTensor q = NewMatrix(device_, rows, points, DType::kBF16);
    const OwnedTensor y = NewMatrix(device_, rows, points, DType::kBF16);
    return Stopwatch(device_).Time(
        [&] { conv->Apply({.sequences = sequences, .k = k, .v = v, .q = q, .y = y}); });
  }

 private:
  Device device_;
};

}  // namespace

std::unique_ptr<DeviceYardsticks> MakeYardsticks() { return std::make_unique<CudaYardsticks>(); }

}  // namespace hippodrome::cuda
