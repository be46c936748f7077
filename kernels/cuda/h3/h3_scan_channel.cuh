// The matrices of one channel of the scan, made by its warp when a block starts. Lane 4 g + t; a
// block of the scan has 16 tokens q, and MMAs number their rows, columns and sums (of 16) so that a
// lane deals with tokens q = 4t .. 4t + 3 of blocks 4g .. 4g + 3 throughout:
//   sum index of tokens    slots 2t, 2t + 1, 2t + 8, 2t + 9 are q = 4t, 4t + 1, 4t + 2, 4t + 3
//   columns of tokens      column 2t + e of tile j is q = 4t + 2j + e
//   columns of states      column 2t + e of tile i is part e (re, im) of mode 4i + t
//   sum index of states    slots 2t + e, 2t + 8 + e of step s are the columns of tiles 2s, 2s + 1
//   rows of blocks         rows g, g + 8 of tile m are blocks 4g + 2m, 4g + 2m + 1
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CHANNEL_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CHANNEL_CUH_

#include "kernels/cuda/h3/h3_scan_stage.cuh"

namespace hippodrome::cuda {

inline constexpr int kStateTiles = 2 * kMaxModes / 8;

// Right operands, [...][term][slots].
template <typename T>
struct ScanOperands {
  static constexpr int kTerms = ScanTerms<T>::kStates;

  uint32_t in[kStateTiles][kTerms][2];          // u to states after the block: dA^(15 - q)
  uint32_t out[kStateTiles / 2][2][kTerms][2];  // states before the block to y: w dA^(q + 1)
  uint32_t direct[3][kTerms];                   // u to y: the kernel, see ToeplitzOffset()
  float scale;                                  // that `out` and `direct` are multiplied by
};

// A banded Toeplitz matrix from tokens q' to tokens q has 2 * 2 words (column tile j, slot h) that
// depend on j - h alone: the elements of q - q' = 2 (j - h) + ToeplitzOffset() and one less.
__device__ inline int ToeplitzOffset() {
  const int lane = threadIdx.x % kWarp;
  return lane / 8 * 4 + lane / 4 % 2 - lane % 4 * 4;
}

// Rows q < 16: dA^q of every mode; then w dA. Zeros for padding modes.
using ScanTable = float2[kScanSteps + 1][kMaxModes];

// The powers of lane = mode.
template <typename T>
__device__ inline void MakePowers(const H3View& layer, int channel, ScanTable& table,
                                  float4 (&powers)[kMaxModes][2]) {
  const int lane = threadIdx.x % kWarp;
  const bool real = channel < layer.d_model && lane < layer.modes;
  const int64_t mode = int64_t{channel} * layer.modes + lane;
  const float2 a = real ? layer.a[mode] : make_float2(0, 0);
  const float2 w = real ? layer.w[mode] : make_float2(0, 0);
  // In double: errors of high powers would add up over all blocks.
  double re = real ? 1 : 0;
  double im = 0;
  const auto multiply = [&](double by_re, double by_im) {
    const double product = re * by_re - im * by_im;
    im = re * by_im + im * by_re;
    re = product;
  };
  const auto power = [&] { return make_float2(static_cast<float>(re), static_cast<float>(im)); };
  for (int q = 0; q < kScanSteps; ++q) {
    table[q][lane] = power();
    multiply(double{a.x}, double{a.y});
  }
  table[kScanSteps][lane] = ComplexMultiply(w, a);
  const float2 a16 = power();
  multiply(re, im);
  multiply(re, im);
  const float2 a64 = power();
  multiply(re, im);
  const float2 a128 = power();
  multiply(re, im);
  const float2 a256 = power();
  powers[lane][0] = make_float4(a16.x, a16.y, a64.x, a64.y);
  powers[lane][1] = make_float4(a128.x, a128.y, a256.x, a256.y);
}

// taps l and l - 1 for l = -16 .. 79.
template <typename T>
__device__ inline void MakeTaps(const H3View& layer, int channel,
                                typename ScanShared<T>::TapPair (&taps)[kTapWords]) {
  const auto tap = [&](int l) {
    const bool real = channel < layer.d_model && l >= 0 && l < layer.taps;
    return real ? layer.fir[int64_t{channel} * layer.taps + l] : 0.0f;
  };
  for (int i = threadIdx.x % kWarp; i < kTapWords; i += kWarp) {
    SplitBF16(tap(i - 16), tap(i - 17), taps[i].terms);
  }
}

template <typename T>
__device__ inline void MakeOperands(const H3View& layer, int channel, const ScanTable& table,
                                    ScanOperands<T>& operands) {
  const int lane = threadIdx.x % kWarp;
  const int g = lane / 4;
  const int t = lane % 4;
  const auto kernel = [&](int l) {
    const bool real = channel < layer.d_model && l >= 0 && l < kScanSteps;
    return real ? layer.kernel[int64_t{channel} * kScanSteps + l] : 0.0f;
  };
  const float2 weight = table[kScanSteps][lane];
  operands.scale =
      StateScale<T>(WarpMax(fmaxf(fmaxf(fabsf(weight.x), fabsf(weight.y)), fabsf(kernel(lane)))));
#pragma unroll
  for (int i = 0; i < kStateTiles; ++i) {
    const auto value = [&](int q) {
      const float2 power = table[kScanSteps - 1 - q][4 * i + g / 2];
      return g % 2 == 0 ? power.x : power.y;
    };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t terms[ScanTerms<T>::kStates];
      SplitState(value(4 * t + 2 * h), value(4 * t + 2 * h + 1), terms);
#pragma unroll
      for (int term = 0; term < ScanTerms<T>::kStates; ++term) {
        operands.in[i][term][h] = terms[term];
      }
      const int mode = 4 * i + t;
      const int q = g / 2 * 4 + g % 2 + 2 * h;
      const float2 c = ComplexMultiply(table[kScanSteps][mode], table[q][mode]);
      SplitState(c.x * operands.scale, -c.y * operands.scale, terms);
#pragma unroll
      for (int term = 0; term < ScanTerms<T>::kStates; ++term) {
        operands.out[i / 2][h][term][i % 2] = terms[term];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const int l = ToeplitzOffset() + 2 * (i - 1);
    SplitState(kernel(l) * operands.scale, kernel(l - 1) * operands.scale, operands.direct[i]);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CHANNEL_CUH_
