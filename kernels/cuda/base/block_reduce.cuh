// Reductions of integers over the threads of a block: exact, so in no particular order.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_BLOCK_REDUCE_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_BLOCK_REDUCE_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

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
