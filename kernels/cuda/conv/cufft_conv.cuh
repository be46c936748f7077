// What cufft_conv.cu does between transforms: one element for each thread.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_CUFFT_CONV_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_CUFFT_CONV_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

inline constexpr int kElementThreads = 256;

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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_CUFFT_CONV_CUH_
