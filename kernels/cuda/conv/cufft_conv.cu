// The gated convolution by cuFFT: a real transform of every row, forth and back, and elementwise
// kernels before, between and after.
#include <cufft.h>

#include <cassert>
#include <vector>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/gated_conv.h"

namespace hippodrome::cuda {
namespace {

// Between transforms: one element for each thread.

constexpr int kElementThreads = 256;

__device__ inline int64_t ElementIndex() {
  return static_cast<int64_t>(blockIdx.x) * kElementThreads + threadIdx.x;
}

// u = k v
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    ProductKernel(const T* k, const T* v, float* u, int64_t count) {
  const int64_t i = ElementIndex();
  if (i < count) u[i] = Widen(k[i]) * Widen(v[i]);
}

// z *= scale * the spectrum of its channel, where `spectra` has `period` numbers.
__global__ void __launch_bounds__(kElementThreads)
    FilterKernel(float2* z, const float2* spectra, int64_t period, float scale, int64_t count) {
  const int64_t i = ElementIndex();
  if (i >= count) return;
  const float2 y = ComplexMultiply(z[i], spectra[i % period]);
  z[i] = make_float2(scale * y.x, scale * y.y);
}

// y = q u
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    GateKernel(const T* q, const float* u, T* y, int64_t count) {
  const int64_t i = ElementIndex();
  if (i < count) y[i] = FromFloat<T>(Widen(q[i]) * u[i]);
}

constexpr const char* kOperation = "cufft_conv";

void NoteResult(Device& device, cufftResult result) {
  if (result == CUFFT_SUCCESS) return;
  device.Note(result == CUFFT_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaErrorUnknown,
              kOperation);
}

// Transforms of `rows` adjacent rows of `points` points.
class Plan {
 public:
  Plan(Device& device, cufftType type, int64_t points, int64_t rows) : device_(device) {
    int size = static_cast<int>(points);
    NoteResult(device, cufftPlanMany(&plan_, 1, &size, nullptr, 1, 0, nullptr, 1, 0, type,
                                     static_cast<int>(rows)));
    NoteResult(device, cufftSetStream(plan_, device.stream()));
  }
  ~Plan() { cufftDestroy(plan_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void Forward(float* from, float2* to) const {
    NoteResult(device_, cufftExecR2C(plan_, from, to));
  }
  void Inverse(float2* from, float* to) const {
    NoteResult(device_, cufftExecC2R(plan_, from, to));
  }

 private:
  Device& device_;
  cufftHandle plan_ = 0;
};

// What a call of one size needs beside the spectra.
struct Workspace {
  Workspace(Device& device, int64_t points, int64_t sequence_rows)
      : rows(sequence_rows),
        forward(device, CUFFT_R2C, points, rows),
        inverse(device, CUFFT_C2R, points, rows),
        values(AllocateZeroed(device, static_cast<size_t>(rows * points) * sizeof(float))),
        spectra(AllocateZeroed(device,
                               static_cast<size_t>(rows * (points / 2 + 1)) * sizeof(float2))) {}

  int64_t rows;
  Plan forward;
  Plan inverse;
  std::shared_ptr<void> values;
  std::shared_ptr<void> spectra;
};

class CufftGatedConv final : public GatedConv {
 public:
  CufftGatedConv(Device& device, std::span<const double> kernels, int64_t channels, int64_t points)
      : device_(device), channels_(channels), points_(points) {
    const std::vector<float> rounded(kernels.begin(), kernels.end());
    Workspace work(device, points, channels);
    CopyToDevice(device, rounded.data(), work.values.get(), rounded.size() * sizeof(float));
    work.forward.Forward(static_cast<float*>(work.values.get()),
                         static_cast<float2*>(work.spectra.get()));
    spectra_ = work.spectra;
    device.Finish(kOperation);
  }

  void Apply(const GatedConvCall& call) override {
    assert(call.k.rows == call.sequences * channels_ && call.k.cols == points_);
    if (work_ == nullptr || work_->rows != call.k.rows) {
      work_.reset();
      work_ = std::make_unique<Workspace>(device_, points_, call.k.rows);
    }
    if (call.k.dtype == DType::kBF16) {
      Convolve<BF16>(call);
    } else {
      Convolve<float>(call);
    }
  }

 private:
  template <typename T>
  void Convolve(const GatedConvCall& call) {
    const int64_t count = call.k.rows * points_;
    const int64_t frequencies = points_ / 2 + 1;
    auto* values = static_cast<float*>(work_->values.get());
    auto* spectra = static_cast<float2*>(work_->spectra.get());
    Launch(device_, kOperation, ProductKernel<T>, Elements(count),
           static_cast<const T*>(call.k.data), static_cast<const T*>(call.v.data), values, count);
    work_->forward.Forward(values, spectra);
    Launch(device_, kOperation, FilterKernel, Elements(call.k.rows * frequencies), spectra,
           static_cast<const float2*>(spectra_.get()), channels_ * frequencies,
           1.0f / static_cast<float>(points_), call.k.rows * frequencies);
    work_->inverse.Inverse(spectra, values);
    Launch(device_, kOperation, GateKernel<T>, Elements(count), static_cast<const T*>(call.q.data),
           values, static_cast<T*>(call.y.data), count);
  }

  static Grid Elements(int64_t count) {
    return {.blocks = dim3(static_cast<unsigned>((count + kElementThreads - 1) / kElementThreads)),
            .threads = dim3(kElementThreads)};
  }

  Device& device_;
  int64_t channels_;
  int64_t points_;
  std::shared_ptr<void> spectra_;  // [H, N / 2 + 1]
  std::unique_ptr<Workspace> work_;
};

}  // namespace

std::unique_ptr<GatedConv> MakeCufftGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points) {
  return std::make_unique<CufftGatedConv>(device, kernels, channels, points);
}

}  // namespace hippodrome::cuda
