// Reductions over the threads of a block.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_BLOCK_REDUCE_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_BLOCK_REDUCE_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

// The sum of x over `warps` warps, of which this is number `warp`, in an order that their number
// alone decides. partial: [warps], shared, of this call and these warps alone. Every thread of the
// block must come.
__device__ inline float SumOfWarps(float x, int warp, int warps, float* partial) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  x = WarpSum(x);
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? partial[lane] : 0.0f);
}

// The sum of x over the block. partial: [kWarp], shared, of this call alone. Every thread must
// come.
__device__ inline float BlockSum(float x, float* partial) {
  return SumOfWarps(x, static_cast<int>(threadIdx.x) / kWarp, static_cast<int>(blockDim.x) / kWarp,
                    partial);
}

// The largest x of the block. partial: [kWarp], shared, of this call alone. Every thread must come.
__device__ inline float BlockMax(float x, float* partial) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = WarpMax(x);
  if (lane == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  return WarpMax(partial[lane < warps ? lane : 0]);
}

// Of integers: exact, so in no particular order.
struct Add {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct Larger {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};
struct Smaller {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a < b ? a : b; }
};

// Over all lanes; every lane gets the result.
template <class Combine>
__device__ uint64_t WarpReduce(uint64_t x, Combine combine) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    x = combine(x, __shfl_xor_sync(kAllLanes, x, mask));
  }
  return x;
}

// Over all threads; every thread gets the result. 0 must be neutral for `combine`. `partials` is
// shared memory. REQUIRES: whole warps.
template <class Combine>
__device__ uint64_t BlockReduce(uint64_t x, Combine combine, uint64_t (&partials)[kWarp]) {
  const unsigned lane = threadIdx.x % kWarp;
  x = WarpReduce(x, combine);
  if (lane == 0) partials[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = WarpReduce(lane < blockDim.x / kWarp ? partials[lane] : 0, combine);
  __syncthreads();  // the next call writes the partials again
  return x;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_BLOCK_REDUCE_CUH_
