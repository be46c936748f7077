// H3 over the first T <= L tokens of sequences, with the diagonal SSM as one FFT convolution
// (FlashConv): qkv is read once, o is written once.
//
// The convolution is a "right-angle" one, of L points. A block has all tokens of a few channels in
// shared memory.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_FFT_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_FFT_CUH_

#include "kernels/cuda/h3/h3_fft_state.cuh"

namespace hippodrome::cuda {

// kChannels channels of sequence blockIdx.y, from kChannels * blockIdx.x on.
template <typename T, int kPoints>
__global__ void __launch_bounds__(H3FftBlock<kPoints>::kThreads, H3FftBlock<kPoints>::kBlocks)
    H3FftKernel(H3FftArguments<T> arguments) {
  using Block = H3FftBlock<kPoints>;
  const int64_t slot = arguments.slots[blockIdx.y];
  if (slot < 0) return;
  char* shared = SharedMemory();
  auto* taps = reinterpret_cast<float*>(shared + Block::kTransformBytes);
  auto* states = reinterpret_cast<float2*>(shared + Block::kTransformBytes + Block::kTapBytes);
  const H3FftRows<T, kPoints> rows(arguments, reinterpret_cast<float*>(shared), taps);
  const int row = threadIdx.x / Block::kGroup;
  const int first = threadIdx.x % Block::kGroup * 8;
  constexpr int second = Block::kGroup * 8;

  rows.LoadTaps();
  rows.LoadKeys();
  __syncthreads();
  rows.StoreRing(slot);
  float ks[2][8];
  rows.Shift(row, first, ks[0]);
  rows.Shift(row, first + second, ks[1]);
  __syncthreads();
  rows.StoreEight(row, first, ks[0]);
  rows.StoreEight(row, first + second, ks[1]);
  __syncthreads();
  rows.MultiplyValues();
  __syncthreads();
  SegmentStates(arguments, rows, states);
  // The transforms share the memory of the rows.
  const auto kernel = [&]() -> int64_t { return rows.Exists(row) ? rows.Channel(row) : 0; };
  ConvolveRow<Block, kPoints>(arguments.tables, kernel, threadIdx.x % Block::kGroup, rows.Row(row),
                              reinterpret_cast<float2*>(shared) + row * kFftShared<kPoints>);
  __syncthreads();
  StoreStates(arguments, rows, states, slot);
  rows.StoreGated();
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_FFT_CUH_
