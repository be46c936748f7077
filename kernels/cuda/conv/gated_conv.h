// Gated long convolutions of many rows by FFT, outside of any layer: our fused kernel, and the same
// with cuFFT as a yardstick and for lengths beyond one block.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_GATED_CONV_H_
#define HIPPODROME_KERNELS_CUDA_CONV_GATED_CONV_H_

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// y = q * (K (*) (k * v)) for B sequences and H channels, (*) a circular convolution of N points in
// time: causal for inputs that are zero in their second half. Row (b, h) of every tensor is at
// (b * H + h) * N, contiguous in time; tensors start at multiples of 8 bytes.
struct GatedConvCall {
  int64_t sequences = 0;  // B
  Tensor k, v, q;         // [B H, N], kBF16 or kF32
  Tensor y;               // [B H, N], as the inputs
};

// Spectra of H kernels. Not thread-safe.
class GatedConv {
 public:
  virtual ~GatedConv() = default;
  virtual void Apply(const GatedConvCall& call) = 0;
};

// Longest transform of the fused kernel.
inline constexpr int64_t kLongestFusedTransform = 32768;

// One launch: product, transform of N / 2 complex numbers that are the even and the odd points of a
// row, pointwise product, inverse, gate. kernels: H rows of `points` values, transformed in double.
// points: a power of two in [32, kLongestFusedTransform]. dtype: of the rows; beside kBF16 all
// between k v and y is in f16, scaled for each row and kernel, so that neither size nor neighbours
// matter, and errs by about as much as one more rounding of y to bf16.
std::unique_ptr<GatedConv> MakeFusedGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points, DType dtype);
// The same by cuFFT, any `points` and rows of either type; null in builds without it.
std::unique_ptr<GatedConv> MakeCufftGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_GATED_CONV_H_
