// H3 over the first T <= L tokens of sequences, with the diagonal SSM as one FFT convolution
// (FlashConv): qkv is read once, o is written once.
//
// The convolution is a "right-angle" one (see kernels/cpu/fft_plan.h): u_t exp(i pi t / 2L) is
// transformed by L points without zero padding, and the real part of the unweighted result is the
// causal convolution. A block has all tokens of a few channels in shared memory.
#ifndef HIPPODROME_KERNELS_CUDA_H3_FFT_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_FFT_CUH_

#include "kernels/cuda/h3_fft_state.cuh"

namespace hippodrome::cuda {

// exp(i pi j / 32): the weight of point t + j L / 16 is that of t times this.
__device__ inline float2 ColumnWeight(int j) {
  constexpr float kCosine[kFftValues + 1] = {
      1.0f,         0.995184727f, 0.980785280f, 0.956940336f,  0.923879533f, 0.881921264f,
      0.831469612f, 0.773010453f, 0.707106781f, 0.634393284f,  0.555570233f, 0.471396737f,
      0.382683432f, 0.290284677f, 0.195090322f, 0.0980171403f, 0.0f};
  return make_float2(kCosine[j], kCosine[kFftValues - j]);
}

// y of the thread's row from its u. The shared memory of the rows is that of the transforms too.
template <typename T, int kPoints>
__device__ inline void Convolve(const H3FftArguments<T>& arguments,
                                const H3FftRows<T, kPoints>& rows, float2* shared) {
  using Block = H3FftBlock<kPoints>;
  const int row = threadIdx.x / Block::kGroup;
  const int thread = threadIdx.x % Block::kGroup;
  float2 z[kFftValues];
  {
    const float* u = rows.Row(row) + Block::Address(thread);
    const float2 weight = arguments.turns[thread];
    Unroll<kFftValues>([&](auto j) {
      const float2 w = ComplexMultiply(weight, ColumnWeight(j));
      z[j] = make_float2(u[Block::Distance(j)] * w.x, u[Block::Distance(j)] * w.y);
    });
  }
  __syncthreads();
  const BlockFft<kPoints> fft(thread, shared + row * kFftShared<kPoints>, arguments.twiddles);
  fft.Forward(z);
  const int64_t channel = rows.Exists(row) ? rows.Channel(row) : 0;
  MultiplySpectrum<kPoints>(z, arguments.spectra + channel * (kPoints / 2), thread);
  fft.Inverse(z);
  __syncthreads();
  const int again = Forget(thread);
  float* y = rows.Row(row) + Block::Address(again);
  const float2 weight = arguments.turns[again];
  Unroll<kFftValues>([&](auto j) {
    const float2 w = ComplexMultiply(weight, ColumnWeight(j));
    y[Block::Distance(j)] = z[j].x * w.x + z[j].y * w.y;
  });
}

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
  Convolve(arguments, rows, reinterpret_cast<float2*>(shared));
  __syncthreads();
  StoreStates(arguments, rows, states, slot);
  rows.StoreGated();
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_FFT_CUH_
