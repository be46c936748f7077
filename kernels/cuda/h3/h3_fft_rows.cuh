// The rows that a block of h3_fft.cuh keeps in shared memory before and after its transforms: one
// channel each, first k, then u = ks v, then y.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_FFT_ROWS_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_FFT_ROWS_CUH_

#include "kernels/cuda/conv/right_angle.cuh"
#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

inline constexpr int kMostTaps = 64;
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
  const int32_t* slots;
  int32_t tokens;
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
  static constexpr int kTapBytes = kChannels * kMostTaps * 4;
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

  __device__ int Channel(int row) const { return blockIdx.x * Block::kChannels + row; }
  __device__ bool Exists(int row) const { return Channel(row) < arguments_.layer.d_model; }
  __device__ float* Row(int row) const { return rows_ + row * Block::kRow; }

  __device__ void LoadTaps() const {
    const H3View& layer = arguments_.layer;
    for (int i = threadIdx.x; i < Block::kChannels * kMostTaps; i += Block::kThreads) {
      const int row = i / kMostTaps;
      const int tap = i % kMostTaps;
      taps_[i] = Exists(row) && tap < layer.taps ? layer.fir[Channel(row) * layer.taps + tap] : 0;
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
    const int64_t token = int64_t{blockIdx.y} * arguments_.tokens + place.t;
    T* o = arguments_.o + token * arguments_.o_stride + Channel(place.row);
    ForEachToken(0, [&](int i, float& y, float q) {
      if (Inside(place, i)) o[i * Block::kGroup * arguments_.o_stride] = FromFloat<T>(y * q);
    });
  }

  // The last k, the one of position p in column p mod N; zeros for columns without one.
  __device__ void StoreRing(int64_t slot) const {
    const H3View& layer = arguments_.layer;
    const int last = arguments_.tokens - 1;
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
        const float* four = taps_ + row * kMostTaps + tap + 4 * half;
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
  __device__ bool Inside(const Place& place, int i) const {
    return Exists(place.row) && place.t + i * Block::kGroup < arguments_.tokens;
  }

  // body(i, x, column of the token) for the thread's i-th time, with 0 where there is no token.
  // part: 0 (q), 1 (k), 2 (v).
  template <typename Body>
  __device__ void ForEachToken(int part, const Body& body) const {
    const Place place;
    const int64_t token = int64_t{blockIdx.y} * arguments_.tokens + place.t;
    const T* columns = arguments_.qkv + token * arguments_.qkv_stride +
                       int64_t{part} * arguments_.layer.d_model + Channel(place.row);
    float* first = Row(place.row) + Block::Address(place.t);
    Unroll<kFftValues>([&](auto i) {
      float value = 0;
      if (Inside(place, i)) value = Widen(columns[i * Block::kGroup * arguments_.qkv_stride]);
      body(i, first[Block::Distance(i)], value);
    });
  }

  const H3FftArguments<T>& arguments_;
  float* rows_;
  float* taps_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_FFT_ROWS_CUH_
