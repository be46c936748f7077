// The kernel of cross_entropy.h: a block turns a row of logits into a loss and its gradients.
#ifndef HIPPODROME_KERNELS_CUDA_TRAINING_SOFTMAX_LOSS_CUH_
#define HIPPODROME_KERNELS_CUDA_TRAINING_SOFTMAX_LOSS_CUH_

#include "kernels/cuda/rows/layer_norm.cuh"

namespace hippodrome::cuda {

inline constexpr int kLossThreads = 512;

struct SoftmaxLossArguments {
  float* logits;  // rows of `stride`; replaced by their gradients
  int64_t stride;
  int64_t vocab;
  const int32_t* labels;  // -1: neither a loss nor gradients
  float scale;            // of the gradients
  float* losses;
  bool wants_gradients;
};

// The largest x of the block. partial: [kWarp], shared, of this call alone. Every thread must come.
__device__ inline float BlockMax(float x, float* partial) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = WarpMax(x);
  if (lane == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  return WarpMax(partial[lane < warps ? lane : 0]);
}

// One block per row, of whole warps. The order of the sum follows from the vocabulary alone.
__global__ void __launch_bounds__(kLossThreads) SoftmaxLossKernel(SoftmaxLossArguments a) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  float* logits = a.logits + row * a.stride;
  const int32_t label = a.labels[row];
  if (label < 0) {
    if (threadIdx.x == 0) a.losses[row] = 0;
    if (!a.wants_gradients) return;
    for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) logits[i] = 0;
    return;
  }
  float most = logits[0];
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) most = fmaxf(most, logits[i]);
  most = BlockMax(most, partial[0]);
  float sum = 0;
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) sum += expf(logits[i] - most);
  // Beyond its barrier nobody reads logits of others.
  const float distance = most - logits[label];
  sum = BlockSum(sum, partial[1]);
  if (threadIdx.x == 0) a.losses[row] = logf(sum) + distance;
  if (!a.wants_gradients) return;
  const float factor = a.scale / sum;
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) {
    logits[i] = expf(logits[i] - most) * factor - (i == label ? a.scale : 0.0f);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_TRAINING_SOFTMAX_LOSS_CUH_
