// Complex numbers in double, for what kernels compute once: powers and spectra of modes.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_COMPLEX_DOUBLE_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_COMPLEX_DOUBLE_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

struct ComplexDouble {
  double re;
  double im;
};

__device__ inline ComplexDouble ToDouble(float2 z) { return {z.x, z.y}; }
__device__ inline float2 ToFloat2(ComplexDouble z) {
  return make_float2(static_cast<float>(z.re), static_cast<float>(z.im));
}
__device__ inline ComplexDouble Conjugate(ComplexDouble z) { return {z.re, -z.im}; }
__device__ inline ComplexDouble operator*(ComplexDouble a, ComplexDouble b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ inline ComplexDouble operator/(ComplexDouble a, ComplexDouble b) {
  const double scale = 1 / (b.re * b.re + b.im * b.im);
  return {(a.re * b.re + a.im * b.im) * scale, (a.im * b.re - a.re * b.im) * scale};
}

// a^n, n >= 0.
__device__ inline ComplexDouble Power(ComplexDouble a, int n) {
  ComplexDouble power = {1, 0};
  for (; n > 0; n /= 2, a = a * a) {
    if (n % 2 == 1) power = power * a;
  }
  return power;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_COMPLEX_DOUBLE_CUH_
