// The spectra of the kernels of an H3 layer for right-angle transforms of L points,
//   S_f = 1/L sum_{l < L} K[l] exp(i pi l / 2L) exp(-2 pi i f l / L),
// K[l] = Re sum_n w_n a_n^l, D added to K[0]: geometric series. With c = exp(i pi (1 - 4 f) / 2L),
// whose power c^L is i, a mode and its conjugate give
//   1/2 w (1 - i a^L) / (1 - a c) + 1/2 w* (1 - i a*^L) / (1 - a* c).
// Everything is in double, from the modes as the recurrence has them.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SPECTRA_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SPECTRA_CUH_

#include "kernels/cuda/base/complex_double.cuh"
#include "kernels/cuda/conv/fft_tables.h"
#include "kernels/cuda/h3/h3_weights.h"

namespace hippodrome::cuda {

inline constexpr int kSpectrumThreads = 256;
inline constexpr int kSpectrumModes = 32;  // at most

// One mode of the layer: what the sum over frequencies divides by 1 - a c and by 1 - a* c.
struct SpectrumMode {
  ComplexDouble a;
  ComplexDouble numerator;
  ComplexDouble conjugate_numerator;
};

__device__ inline SpectrumMode MakeSpectrumMode(float2 mode, float2 weight, int points) {
  const ComplexDouble a = ToDouble(mode);
  const ComplexDouble w = {0.5 * weight.x, 0.5 * weight.y};
  const ComplexDouble end = Power(a, points);
  return {a, w * ComplexDouble{1 + end.im, -end.re},
          Conjugate(w) * ComplexDouble{1 - end.im, -end.re}};
}

// numerator / (1 - a c)
__device__ inline ComplexDouble Series(ComplexDouble numerator, ComplexDouble a, ComplexDouble c) {
  const ComplexDouble ratio = a * c;
  return numerator / ComplexDouble{1 - ratio.re, -ratio.im};
}

// Head blockIdx.y, positions from kSpectrumThreads * blockIdx.x on. REQUIRES: head_dim 1.
__global__ void __launch_bounds__(kSpectrumThreads)
    H3SpectraKernel(H3View layer, int points, float2* spectra) {
  auto* modes = reinterpret_cast<SpectrumMode*>(SharedMemory());
  const int head = blockIdx.y;
  const int thread = threadIdx.x;
  if (thread < layer.modes) {
    const int i = head * layer.modes + thread;
    modes[thread] = MakeSpectrumMode(layer.a[i], layer.w[i], points);
  }
  __syncthreads();
  const int position = blockIdx.x * kSpectrumThreads + thread;
  ComplexDouble c;
  sincospi((1 - 4.0 * FftFrequency(points, position)) / (2.0 * points), &c.im, &c.re);
  ComplexDouble sum = {layer.skip[head], 0};
  for (int n = 0; n < layer.modes; ++n) {
    const SpectrumMode& mode = modes[n];
    const ComplexDouble first = Series(mode.numerator, mode.a, c);
    const ComplexDouble second = Series(mode.conjugate_numerator, Conjugate(mode.a), c);
    sum.re += first.re + second.re;
    sum.im += first.im + second.im;
  }
  spectra[int64_t{head} * points + FftSpectrumOffset(points, position)] =
      ToFloat2({sum.re / points, sum.im / points});
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SPECTRA_CUH_
