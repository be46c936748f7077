// The final states of the channels of a block of h3_fft.cuh, s = sum_t a^(T - 1 - t) u_t for each
// mode: a lane is a mode, a warp takes a segment of time, 8 steps at once by the powers of a.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_FFT_STATE_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_FFT_STATE_CUH_

#include "kernels/cuda/base/complex_double.cuh"
#include "kernels/cuda/h3/h3_fft_rows.cuh"

namespace hippodrome::cuda {

inline constexpr int kHornerSteps = 8;

// s after the u of times [begin, end) of a row, from zero. REQUIRES: begin % 8 == 0.
template <int kPoints>
__device__ inline float2 SegmentState(float2 a, const float* row, int begin, int end) {
  using Block = H3FftBlock<kPoints>;
  float2 powers[kHornerSteps];  // a^(j + 1)
  ComplexDouble power = ToDouble(a);
  Unroll<kHornerSteps>([&](auto j) {
    powers[j] = ToFloat2(power);
    power = power * ToDouble(a);
  });
  float2 s = make_float2(0, 0);
  int t = begin;
  for (; t + kHornerSteps <= end; t += kHornerSteps) {
    s = ComplexMultiply(powers[kHornerSteps - 1], s);
    const auto* u = reinterpret_cast<const float4*>(row + Block::Address(t));
    Unroll<kHornerSteps / 4>([&](auto i) {
      const float4 four = u[i];
      const float values[4] = {four.x, four.y, four.z, four.w};
      Unroll<4>([&](auto j) {
        constexpr int age = kHornerSteps - 1 - 4 * i - j;
        if constexpr (age == 0) {
          s.x += values[j];
        } else {
          s.x = fmaf(powers[age - 1].x, values[j], s.x);
          s.y = fmaf(powers[age - 1].y, values[j], s.y);
        }
      });
    });
  }
  for (; t < end; ++t) s = ComplexMultiplyAdd(a, s, make_float2(row[Block::Address(t)], 0));
  return s;
}

// What each segment of u adds to the state at the end, [channels][segments][kMostModes].
template <typename T, int kPoints>
__device__ inline void SegmentStates(const H3FftArguments<T>& arguments,
                                     const H3FftRows<T, kPoints>& rows, float2* states) {
  using Block = H3FftBlock<kPoints>;
  constexpr int kSegment = kPoints / Block::kSegments;
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const H3View& layer = arguments.layer;
  for (int i = warp; i < Block::kChannels * Block::kSegments; i += Block::kWarps) {
    const int row = i / Block::kSegments;
    const int begin = i % Block::kSegments * kSegment;
    const int end = begin + kSegment < arguments.tokens ? begin + kSegment : arguments.tokens;
    float2 s = make_float2(0, 0);
    if (begin < end && lane < layer.modes && rows.Exists(row)) {
      const float2 a = layer.a[rows.Channel(row) * layer.modes + lane];
      s = SegmentState<kPoints>(a, rows.Row(row), begin, end);
      s = ComplexMultiply(s, ToFloat2(Power(ToDouble(a), arguments.tokens - end)));
    }
    states[i * kMostModes + lane] = s;
  }
}

// Adds the segments up and stores the states of a slot.
template <typename T, int kPoints>
__device__ inline void StoreStates(const H3FftArguments<T>& arguments,
                                   const H3FftRows<T, kPoints>& rows, const float2* states,
                                   int64_t slot) {
  using Block = H3FftBlock<kPoints>;
  const H3View& layer = arguments.layer;
  for (int i = threadIdx.x; i < Block::kChannels * kMostModes; i += Block::kThreads) {
    const int row = i / kMostModes;
    const int mode = i % kMostModes;
    if (!rows.Exists(row) || mode >= layer.modes) continue;
    float2 sum = make_float2(0, 0);
    for (int segment = 0; segment < Block::kSegments; ++segment) {
      const float2 s = states[(row * Block::kSegments + segment) * kMostModes + mode];
      sum = ComplexAdd(sum, s);
    }
    arguments.state.modes[(slot * layer.d_model + rows.Channel(row)) * layer.modes + mode] = sum;
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_FFT_STATE_CUH_
