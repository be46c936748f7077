// The causal convolution of one real row with one kernel by transforms of as many points as the row
// has: a "right-angle" convolution (see kernels/cpu/conv/fft.h). u_t exp(i pi t / 2L) is
// transformed by L points without zero padding, and the real part of the unweighted result is the
// causal convolution.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_RIGHT_ANGLE_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_RIGHT_ANGLE_CUH_

#include "kernels/cuda/conv/fft_block.cuh"

namespace hippodrome::cuda {

// What the transforms of L points read, in device memory.
struct RightAngleTables {
  const float4* spectra;   // of weighted kernels, [kernels][L], in the order of FftSpectrumOffset()
  const float4* twiddles;  // FftTwiddles(L)
  const float2* turns;     // RightAngleTurns(L)
};

// exp(i pi j / 32): the weight of point t + j L / 16 is that of t times this.
__device__ inline float2 ColumnWeight(int j) { return RootOf128(2 * j); }

// row <- kernel number kernel() (*) row, by thread `thread` of the row's kPoints / 16 threads.
// Block says where a row keeps time t, Address(t), and how far time t + j L / 16 is from it,
// Distance(j). shared: kFftShared<kPoints> numbers for each row, which may be the memory of all
// rows. All threads of the block call this together, after a barrier; another one must follow.
template <class Block, int kPoints, typename Kernel>
__device__ inline void ConvolveRow(const RightAngleTables& tables, const Kernel& kernel, int thread,
                                   float* row, float2* shared) {
  float2 z[kFftValues];
  {
    const float* u = row + Block::Address(thread);
    const float2 weight = tables.turns[thread];
    Unroll<kFftValues>([&](auto j) {
      const float2 w = ComplexMultiply(weight, ColumnWeight(j));
      z[j] = make_float2(u[Block::Distance(j)] * w.x, u[Block::Distance(j)] * w.y);
    });
  }
  __syncthreads();
  const BlockFft<kPoints> fft(thread, shared, tables.twiddles);
  fft.Forward(z);
  MultiplySpectrum<kPoints>(z, tables.spectra + kernel() * (kPoints / 2), thread);
  fft.Inverse(z);
  __syncthreads();
  const int again = Forget(thread);
  float* y = row + Block::Address(again);
  const float2 weight = tables.turns[again];
  Unroll<kFftValues>([&](auto j) {
    const float2 w = ComplexMultiply(weight, ColumnWeight(j));
    y[Block::Distance(j)] = z[j].x * w.x + z[j].y * w.y;
  });
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_RIGHT_ANGLE_CUH_
