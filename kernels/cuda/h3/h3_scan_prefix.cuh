// One mode over the 32 blocks of a stretch, of which lane 4 g + t has blocks 4g .. 4g + 3 of the
// mode of t: states from the inputs of the blocks, in f32.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_PREFIX_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_PREFIX_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

// Of one mode, over one block and over the blocks of one, two and four lanes.
struct ModePowers {
  float2 block;     // dA^16
  float2 lanes[3];  // dA^64, dA^128, dA^256
};

struct BlockStates {
  float2 before[4];  // each of the lane's blocks
  float2 after;      // all of them
};

__device__ inline float2 ShuffleUp(float2 x, int lanes) {
  return make_float2(__shfl_up_sync(kAllLanes, x.x, lanes), __shfl_up_sync(kAllLanes, x.y, lanes));
}

// x: what each of the lane's blocks adds; start: the state before the stretch.
__device__ inline BlockStates ScanBlocks(const float2 (&x)[4], float2 start,
                                         const ModePowers& powers) {
  const int g = threadIdx.x % kWarp / 4;
  BlockStates s;
  // From zero before the lane's blocks; then from four, eight and sixteen blocks earlier.
  s.after = x[0];
#pragma unroll
  for (int rho = 1; rho < 4; ++rho) s.after = ComplexMultiplyAdd(powers.block, s.after, x[rho]);
  if (g == 0) s.after = ComplexMultiplyAdd(powers.lanes[0], start, s.after);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const float2 earlier = ShuffleUp(s.after, 4 << i);
    if (g >= 1 << i) s.after = ComplexMultiplyAdd(powers.lanes[i], earlier, s.after);
  }
  s.before[0] = ShuffleUp(s.after, 4);
  if (g == 0) s.before[0] = start;
#pragma unroll
  for (int rho = 1; rho < 4; ++rho) {
    s.before[rho] = ComplexMultiplyAdd(powers.block, s.before[rho - 1], x[rho - 1]);
  }
  return s;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_PREFIX_CUH_
