// The constants of one H3 layer on a device.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// Steps of a block of the scan, for which the start of the kernel is kept.
inline constexpr int64_t kScanSteps = 16;

// Pointers into device memory, passed to kernels by value. d channels, H heads, N taps, M modes;
// all f32, complex numbers as (re, im).
struct H3View {
  int32_t d_model;
  int32_t head_dim;
  int32_t heads;        // H = d / head_dim
  int32_t taps;         // N
  int32_t modes;        // M = N / 2
  int32_t head_major;   // output channel of (head, d2): head * head_dim + d2, else d2 * H + head
  const float* fir;     // [d, N] taps of the shift SSM, its skip added to the first
  const float2* a;      // [H, M] dA
  const float2* w;      // [H, M] 2 C dB: y = Re sum_n w[n] s[n] with s_t = dA s_{t-1} + kv_t
  const float* skip;    // [H] D
  const float* kernel;  // [H, kScanSteps] K[l] = Re sum_n w[n] dA[n]^l, D added to the first
};

class H3PrefillWeights final : public H3Weights {
 public:
  // `activations`: kBF16 or kF32, the dtype of the rings of states and of qkv.
  H3PrefillWeights(Device& device, const H3Parameters& parameters, DType activations);

  int64_t bytes() const override;
  const H3View& view() const { return view_; }
  DType activations() const { return activations_; }

  // The spectra of the heads' kernels for transforms of `points` points, device memory, made on
  // first use by `make` and kept.
  template <typename Make>
  const float2* Spectra(int64_t points, const Make& make) const {
    std::shared_ptr<void>& spectra = spectra_[points];
    if (spectra == nullptr) spectra = make();
    return static_cast<const float2*>(spectra.get());
  }

 private:
  H3View view_ = {};
  DType activations_;
  std::shared_ptr<void> memory_;
  int64_t memory_bytes_ = 0;
  mutable std::map<int64_t, std::shared_ptr<void>> spectra_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_WEIGHTS_H_
