// A kernel as those of kernels/cuda: a batch of Fourier transforms in shared memory. Seeded faults
// show what the emulator finds.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_FFT_EXAMPLE_CUH_
#define HIPPODROME_TESTS_CUDA_ON_CPU_FFT_EXAMPLE_CUH_

#include "kernels/cuda/base/mma.cuh"

namespace hippodrome::cuda {

enum class Fault {
  kNone,
  kNoBarrier,          // between writing a stage and reading it
  kNoBarrierInPlace,   // between reading a stage and overwriting it
  kNoWait,             // for the asynchronous copies
  kReadBeyond,         // one element past the input
  kDynamicBeyond,      // one element past the dynamic shared memory
  kDivergentBarrier,   // half of the threads leave out one
  kBlocksCollide,      // all blocks add to one number
  kNoWarpBarrier,      // between lanes of a warp that exchange numbers
  kShuffleForBarrier,  // which makes the lanes meet, but does not order their memory
};

inline constexpr int kFftPoints = 128;  // one thread per butterfly
inline constexpr int kFftThreads = kFftPoints / 2;

struct FftArguments {
  const float2* in;  // [rows, kFftPoints]
  float2* out;       // [rows, kFftPoints]
  float* energy;     // [rows] sum of squares of the first warp's outputs
  float* total;      // [1] sum of all energies
};

template <Fault kFault>
__device__ void LoadRow(const float2* in, float2* row) {
  const int i = static_cast<int>(threadIdx.x);
  CopyAsync16(row + 2 * i, in + 2 * i);
  CommitCopies();
  if (kFault != Fault::kNoWait) WaitForCopies<0>();
  if (kFault == Fault::kReadBeyond && i == kFftThreads - 1) row[2 * i] = in[2 * i + 2];
}

// Stockham's transform of radix 2, in place: every thread reads two points, then writes two.
template <Fault kFault>
__device__ void Transform(float2* row) {
  const int i = static_cast<int>(threadIdx.x);
  for (int half = 1; half < kFftPoints; half *= 2) {
    if (kFault != Fault::kNoBarrier) __syncthreads();
    const float2 a = row[i];
    const float2 b = row[i + kFftThreads];
    if (kFault != Fault::kNoBarrierInPlace) __syncthreads();
    float2 w;
    sincospif(-static_cast<float>(i % half) / static_cast<float>(half), &w.y, &w.x);
    const float2 wb = ComplexMultiply(w, b);
    const int first = i / half * 2 * half + i % half;
    row[first] = make_float2(a.x + wb.x, a.y + wb.y);
    row[first + half] = make_float2(a.x - wb.x, a.y - wb.y);
  }
  if (kFault != Fault::kDivergentBarrier || i < kFftThreads / 2) __syncthreads();
}

// The sum over the first warp, through shared memory.
template <Fault kFault>
__device__ float Energy(const float2* row) {
  __shared__ float squares[kWarp];
  const int i = static_cast<int>(threadIdx.x);
  squares[i] = row[i].x * row[i].x + row[i].y * row[i].y;
  for (int step = kWarp / 2; step > 0; step /= 2) {
    if (kFault == Fault::kShuffleForBarrier) {
      __shfl_sync(kAllLanes, 0, 0);
    } else if (kFault != Fault::kNoWarpBarrier) {
      __syncwarp();
    }
    if (i < step) squares[i] += squares[i + step];
  }
  __syncwarp();
  return squares[0];
}

// Grid: rows. Block: kFftThreads. Shared memory: a row.
template <Fault kFault>
__global__ void __launch_bounds__(kFftThreads) FftRows(FftArguments arguments) {
  auto* row = reinterpret_cast<float2*>(SharedMemory());
  const int i = static_cast<int>(threadIdx.x);
  LoadRow<kFault>(arguments.in + blockIdx.x * kFftPoints, row);
  Transform<kFault>(row);
  for (int n = i; n < kFftPoints; n += kFftThreads) {
    arguments.out[blockIdx.x * kFftPoints + n] = row[n];
  }
  if (i >= kWarp) return;
  const float energy = Energy<kFault>(row);
  if (kFault == Fault::kDynamicBeyond) row[kFftPoints] = row[0];
  if (i > 0) return;
  arguments.energy[blockIdx.x] = energy;
  if (kFault == Fault::kBlocksCollide) {
    *arguments.total += energy;
  } else {
    atomicAdd(arguments.total, energy);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_FFT_EXAMPLE_CUH_
