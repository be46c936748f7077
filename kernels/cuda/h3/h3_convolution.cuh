// What an H3 layer does between its two convolutions, and the gradients of that, row by row: one
// block for each token. Columns of y, kv and their gradients are triples (head, d1, d2).
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

inline constexpr int kH3RowThreads = 128;

struct H3Sizes {
  int32_t d_model;
  int32_t head_dim;
  bool head_major;  // channel (head, d2) of the output is head * head_dim + d2

  __device__ int heads() const { return d_model / head_dim; }
  __device__ int triples() const { return d_model * head_dim; }
  __device__ int Output(int channel) const {
    return head_major ? channel : channel % head_dim * heads() + channel / head_dim;
  }
  // The channels (head, d1) and (head, d2) of a triple.
  __device__ int First(int triple) const { return triple / head_dim; }
  __device__ int Second(int triple) const {
    return triple / (head_dim * head_dim) * head_dim + triple % head_dim;
  }
};

// q | k | v of the token of this block.
template <typename T>
struct H3Rows {
  const T* qkv;
  int64_t stride;

  __device__ const T* Row(const H3Sizes& sizes, int part) const {
    return qkv + blockIdx.x * stride + int64_t{part} * sizes.d_model;
  }
};

// Matrices in scratch memory, adjacent rows of d or of d * head_dim numbers.
struct H3Scratch {
  float* ks;   // [B T, d]
  float* dks;  // [B T, d]
  float* kv;   // [B T, d head_dim], as those below
  float* r;
  float* y;
  float* dkv;

  __device__ static float* Row(float* matrix, int columns) {
    return matrix + int64_t{blockIdx.x} * columns;
  }
};

// kv = ks v^T, and r = q do^T where there is do.
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ExpandKernel(H3Sizes sizes, H3Rows<T> rows, const float* d_o, int64_t d_o_stride,
                   H3Scratch scratch) {
  const T* q = rows.Row(sizes, 0);
  const T* v = rows.Row(sizes, 2);
  const float* ks = H3Scratch::Row(scratch.ks, sizes.d_model);
  float* kv = H3Scratch::Row(scratch.kv, sizes.triples());
  float* r = H3Scratch::Row(scratch.r, sizes.triples());
  for (int i = static_cast<int>(threadIdx.x); i < sizes.triples(); i += kH3RowThreads) {
    const int first = sizes.First(i);
    const int second = sizes.Second(i);
    kv[i] = ks[first] * Widen(v[second]);
    if (d_o != nullptr) {
      r[i] = Widen(q[first]) * d_o[blockIdx.x * d_o_stride + sizes.Output(second)];
    }
  }
}

// o = q^T y
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ContractKernel(H3Sizes sizes, H3Rows<T> rows, H3Scratch scratch, T* o, int64_t o_stride) {
  const T* q = rows.Row(sizes, 0);
  const float* y = H3Scratch::Row(scratch.y, sizes.triples());
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    const int head = c / n;
    float sum = 0;
    for (int d1 = 0; d1 < n; ++d1) {
      sum = fmaf(Widen(q[head * n + d1]), y[(head * n + d1) * n + c % n], sum);
    }
    o[blockIdx.x * o_stride + sizes.Output(c)] = FromFloat<T>(sum);
  }
}

// dks = dkv v, which stays in scratch memory.
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ShiftGradientKernel(H3Sizes sizes, H3Rows<T> rows, H3Scratch scratch) {
  const T* v = rows.Row(sizes, 2);
  const float* dkv = H3Scratch::Row(scratch.dkv, sizes.triples());
  float* dks = H3Scratch::Row(scratch.dks, sizes.d_model);
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    float sum = 0;
    for (int d2 = 0; d2 < n; ++d2) sum = fmaf(dkv[c * n + d2], Widen(v[c / n * n + d2]), sum);
    dks[c] = sum;
  }
}

// dq = y do and dv = dkv^T ks, into a matrix [B T, 3 d].
__global__ void __launch_bounds__(kH3RowThreads)
    H3RowGradientKernel(H3Sizes sizes, H3Scratch scratch, const float* d_o, int64_t d_o_stride,
                        float* dqkv, int64_t dqkv_stride, bool add) {
  const float* ks = H3Scratch::Row(scratch.ks, sizes.d_model);
  const float* y = H3Scratch::Row(scratch.y, sizes.triples());
  const float* dkv = H3Scratch::Row(scratch.dkv, sizes.triples());
  d_o += blockIdx.x * d_o_stride;
  float* dq = dqkv + blockIdx.x * dqkv_stride;
  float* dv = dq + 2 * int64_t{sizes.d_model};
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    const int first = c / n * n;  // channel of the head
    float q = 0;
    float v = 0;
    for (int i = 0; i < n; ++i) {
      q = fmaf(y[c * n + i], d_o[sizes.Output(first + i)], q);
      v = fmaf(dkv[(first + i) * n + c % n], ks[first + i], v);
    }
    dq[c] = add ? dq[c] + q : q;
    dv[c] = add ? dv[c] + v : v;
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_CUH_
