// H3 over the first T <= L tokens of sequences, with the diagonal SSM as one FFT convolution
// (FlashConv): qkv is read once, o is written once.
//
// The convolution is a "right-angle" one, of L points. A block has all tokens of a few channels in
// shared memory.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_FFT_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_FFT_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/right_angle.cuh"
#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

// Complex numbers in double, for what kernels compute once: powers and spectra of modes.

struct ComplexDouble {
  double re;
  double im;
};

__device__ inline ComplexDouble ToDouble(float2 z) { return {z.x, z.y}; }
__device__ inline float2 ToFloat2(ComplexDouble z) {
  return make_float2(static_cast<float>(z.re), static_cast<float>(z.im));
}
__device__ inline ComplexDouble Conjugate(ComplexDouble z) { return {z.re, -z.im}; }
__device__ inline ComplexDouble operator*(ComplexDouble a, ComplexDouble b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ inline ComplexDouble operator/(ComplexDouble a, ComplexDouble b) {
  const double scale = 1 / (b.re * b.re + b.im * b.im);
  return {(a.re * b.re + a.im * b.im) * scale, (a.im * b.re - a.re * b.im) * scale};
}

// a^n, n >= 0.
__device__ inline ComplexDouble Power(ComplexDouble a, int n) {
  ComplexDouble power = {1, 0};
  for (; n > 0; n /= 2, a = a * a) {
    if (n % 2 == 1) power = power * a;
  }
  return power;
}

// The rows that a block keeps in shared memory before and after its transforms: one
// channel each, first k, then u = ks v, then y.

inline constexpr int kMostTaps = 64;
// Of the taps of one channel, so that those of eight are in different banks.
inline constexpr int kTapStride = kMostTaps + 4;
inline constexpr int kMostModes = 32;

// An H3SequenceCall for a kernel.
template <typename T>
struct H3FftArguments {
  H3View layer;
  H3StateView<T> state;
  const T* qkv;
  int64_t qkv_stride;
  T* o;
  int64_t o_stride;
  const SequencePart* parts;
  RightAngleTables tables;  // spectra of the heads
};

// A block transforms several neighbouring channels, so that what it reads of a token is long.
template <int kPoints>
struct H3FftBlock {
  static constexpr int kChannels = kPoints <= 1024 ? 16 : 16384 / kPoints;
  static constexpr int kGroup = kPoints / kFftValues;  // threads of a channel
  static constexpr int kThreads = kChannels * kGroup;
  static constexpr int kWarps = kThreads / kWarp;
  // Blocks on a multiprocessor: 1024 threads with 64 registers each, where that is enough.
  static constexpr int kBlocks = (kPoints == 256 ? 768 : 1024) / kThreads;

  // Time t >= -kMostTaps of a row. Four floats of padding after each 32 spread the blocks of eight
  // that threads read at once over the banks.
  static __host__ __device__ constexpr int Address(int t) {
    return t + kMostTaps + (t + kMostTaps) / kWarp * 4;
  }
  // From time t < kGroup to time t + j kGroup.
  static constexpr int Distance(int j) { return Address(j * kGroup) - Address(0); }
  // Floats of a row: apart by 4 banks.
  static constexpr int kRow = (Address(kPoints) + kWarp - 1) / kWarp * kWarp + 4;

  // Segments of time into which a channel's state is divided among warps.
  static constexpr int kSegments = kWarps > kChannels ? kWarps / kChannels : 1;

  // Shared memory, in bytes: the rows and later the transforms, the taps, the segments' states.
  static constexpr int kTransformBytes = kChannels * kFftShared<kPoints> * 8;
  static constexpr int kTapBytes = kChannels * kTapStride * 4;
  static constexpr int kStateBytes = kChannels * kSegments * kMostModes * 8;
  static constexpr int kSharedBytes = kTransformBytes + kTapBytes + kStateBytes;
  static_assert(kChannels * kRow * 4 <= kTransformBytes);
};

__device__ inline void LoadEight(const float* from, float* x) {
  const float4 low = *reinterpret_cast<const float4*>(from);
  const float4 high = *reinterpret_cast<const float4*>(from + 4);
  x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
  x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

// The rows of one block, whose threads call these functions together; barriers are the caller's.
template <typename T, int kPoints>
class H3FftRows {
 public:
  using Block = H3FftBlock<kPoints>;

  __device__ H3FftRows(const H3FftArguments<T>& arguments, float* rows, float* taps)
      : arguments_(arguments), rows_(rows), taps_(taps) {}

  // Read where they are needed: registers are short.
  __device__ const SequencePart& Part() const { return arguments_.parts[blockIdx.y]; }
  __device__ int Tokens() const { return Part().tokens; }
  __device__ int Channel(int row) const { return blockIdx.x * Block::kChannels + row; }
  __device__ bool Exists(int row) const { return Channel(row) < arguments_.layer.d_model; }
  __device__ float* Row(int row) const { return rows_ + row * Block::kRow; }

  __device__ void LoadTaps() const {
    const H3View& layer = arguments_.layer;
    for (int i = threadIdx.x; i < Block::kChannels * kMostTaps; i += Block::kThreads) {
      const int row = i / kMostTaps;
      const int tap = i % kMostTaps;
      taps_[row * kTapStride + tap] =
          Exists(row) && tap < layer.taps ? layer.fir[Channel(row) * layer.taps + tap] : 0;
    }
  }

  // k, zero before its first and after its last token.
  __device__ void LoadKeys() const {
    for (int i = threadIdx.x; i < Block::kChannels * kMostTaps; i += Block::kThreads) {
      Row(i / kMostTaps)[Block::Address(i % kMostTaps - kMostTaps)] = 0;
    }
    ForEachToken(1, [](int, float& x, float k) { x = k; });
  }

  __device__ void MultiplyValues() const {
    ForEachToken(2, [](int, float& x, float v) { x *= v; });
  }

  // o = q y
  __device__ void StoreGated() const {
    const Place place;
    const int64_t token = int64_t{Part().first_row} + place.t;
    T* o = arguments_.o + token * arguments_.o_stride + Channel(place.row);
    const int tokens = Tokens();
    ForEachToken(0, [&](int i, float& y, float q) {
      if (Inside(place, i, tokens))
        o[i * Block::kGroup * arguments_.o_stride] = FromFloat<T>(y * q);
    });
  }

  // The last k, the one of position p in column p mod N; zeros for columns without one.
  __device__ void StoreRing(int64_t slot) const {
    const H3View& layer = arguments_.layer;
    const int last = Tokens() - 1;
    for (int i = threadIdx.x; i < Block::kChannels * layer.taps; i += Block::kThreads) {
      const int row = i / layer.taps;
      const int column = i % layer.taps;
      if (!Exists(row)) continue;
      float k = 0;
      if (column <= last) k = Row(row)[Block::Address(last - (last - column) % layer.taps)];
      arguments_.state.rings[(slot * layer.d_model + Channel(row)) * layer.taps + column] =
          FromFloat<T>(k);
    }
  }

  // The shift SSM at eight neighbouring times from `first` on, a multiple of eight.
  __device__ void Shift(int row, int first, float (&ks)[8]) const {
    float k[16];  // of the eight times and of the eight before them
    LoadEight(Row(row) + Block::Address(first), k + 8);
    Unroll<8>([&](auto e) { ks[e] = 0; });
#pragma unroll 1
    for (int tap = 0; tap < arguments_.layer.taps; tap += 8) {
      LoadEight(Row(row) + Block::Address(first - tap - 8), k);
      Unroll<2>([&](auto half) {
        const float* four = taps_ + row * kTapStride + tap + 4 * half;
        const float4 c = *reinterpret_cast<const float4*>(four);
        const float taps[4] = {c.x, c.y, c.z, c.w};
        Unroll<32>([&](auto i) {
          constexpr int j = i / 8;
          constexpr int e = i % 8;
          ks[e] = fmaf(taps[j], k[8 + e - 4 * half - j], ks[e]);
        });
      });
      Unroll<8>([&](auto e) { k[8 + e] = k[e]; });
    }
  }

  // Puts eight values where Shift() read.
  __device__ void StoreEight(int row, int first, const float (&x)[8]) const {
    auto* to = reinterpret_cast<float4*>(Row(row) + Block::Address(first));
    to[0] = make_float4(x[0], x[1], x[2], x[3]);
    to[1] = make_float4(x[4], x[5], x[6], x[7]);
  }

 private:
  // Where this thread is when threads share the tokens, neighbours having neighbouring channels. It
  // has times t, t + kGroup, ...
  struct Place {
    __device__ Place()
        : row(Forget(threadIdx.x) % Block::kChannels), t(Forget(threadIdx.x) / Block::kChannels) {}
    int row;
    int t;
  };
  __device__ bool Inside(const Place& place, int i, int tokens) const {
    return Exists(place.row) && place.t + i * Block::kGroup < tokens;
  }

  // body(i, x, column of the token) for the thread's i-th time, with 0 where there is no token.
  // part: 0 (q), 1 (k), 2 (v).
  template <typename Body>
  __device__ void ForEachToken(int part, const Body& body) const {
    const Place place;
    const int64_t token = int64_t{Part().first_row} + place.t;
    const T* columns = arguments_.qkv + token * arguments_.qkv_stride +
                       int64_t{part} * arguments_.layer.d_model + Channel(place.row);
    float* first = Row(place.row) + Block::Address(place.t);
    const int tokens = Tokens();
    Unroll<kFftValues>([&](auto i) {
      float value = 0;
      if (Inside(place, i, tokens))
        value = Widen(columns[i * Block::kGroup * arguments_.qkv_stride]);
      body(i, first[Block::Distance(i)], value);
    });
  }

  const H3FftArguments<T>& arguments_;
  float* rows_;
  float* taps_;
};

// The final states of the channels of a block, s = sum_t a^(T - 1 - t) u_t for each
// mode: a lane is a mode, a warp takes a segment of time, 8 steps at once by the powers of a.

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
    const int end = begin + kSegment < rows.Tokens() ? begin + kSegment : rows.Tokens();
    float2 s = make_float2(0, 0);
    if (begin < end && lane < layer.modes && rows.Exists(row)) {
      const float2 a = layer.a[rows.Channel(row) * layer.modes + lane];
      s = SegmentState<kPoints>(a, rows.Row(row), begin, end);
      s = ComplexMultiply(s, ToFloat2(Power(ToDouble(a), rows.Tokens() - end)));
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

// kChannels channels of part blockIdx.y, from kChannels * blockIdx.x on.
template <typename T, int kPoints>
__global__ void __launch_bounds__(H3FftBlock<kPoints>::kThreads, H3FftBlock<kPoints>::kBlocks)
    H3FftKernel(H3FftArguments<T> arguments) {
  using Block = H3FftBlock<kPoints>;
  const int64_t slot = arguments.parts[blockIdx.y].slot;
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
