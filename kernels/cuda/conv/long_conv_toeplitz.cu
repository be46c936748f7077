// The long convolution as a product with the Toeplitz matrix of the kernel: y = M u, where M[t, s]
// is K[t - s], or K[s - t] backward, and zero on the other side of the diagonal. M is made on the
// way: an A fragment of 16 x 16 elements depends on t - s alone, so that a lane reads three words
// of the kernel for it, of which neighbouring fragments share two.
//
// With bf16 activations u is exact and the kernel has two bf16 terms (16 bits); with f32 both have
// three (24 bits), which takes six products.
#include <cassert>
#include <cstring>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/conv/long_conv_view.cuh"

namespace hippodrome::cuda {
namespace {

// The operands of the Toeplitz product on their way from device memory to shared memory: a tile of
// u and the part of the kernel that meets it.

// A block computes kTimes x kChannels of y, kDepth times of u at a time.
template <typename T>
struct ToeplitzTile {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kWarpTimes = 32;
  static constexpr int kTimes = kWarps * kWarpTimes;
  static constexpr int kChannels = 64;
  static constexpr int kDepth = sizeof(T) == sizeof(BF16) ? 64 : 32;

  // bf16 terms of u, exactly or to 24 bits, and of the kernel.
  static constexpr int kInputTerms = sizeof(T) == sizeof(BF16) ? 1 : 3;
  static constexpr int kKernelTerms = sizeof(T) == sizeof(BF16) ? 2 : 3;

  // Rows of u are apart by an odd number of 16-byte units, so that eight lie in different banks.
  static constexpr int kStride = kChannels + 8;
  // Differences of a time of y and one of u.
  static constexpr int kWindow = kTimes + kDepth;

  struct alignas(16) Shared {
    BF16 u[kInputTerms][kDepth][kStride];
    // Of the difference m = t - s, at kDepth + m - (t0 - s0): the weights of u_s and u_{s+1}
    // in y_t.
    uint32_t kernel[kKernelTerms][kWindow];
  };
};

// Where a block is.
struct ToeplitzPlace {
  int64_t first_row;  // of the sequence
  int channel;        // first one of the tile
  int channels;       // of it, <= ToeplitzTile::kChannels
  int time;           // first one of the tile of y
};

// Holds one tile in registers between Load() and Store(); all threads call these together, barriers
// are the caller's.
template <typename T>
class ToeplitzStage {
 public:
  using Tile = ToeplitzTile<T>;

  // pairs: as LongConvKernels::pairs() of the block's head, terms of `length` elements; aligned:
  // channels of u can be read in vectors of 16 bytes.
  __device__ ToeplitzStage(const LongConvView<T>& view, const ToeplitzPlace& place,
                           const uint32_t* pairs, int length, bool aligned)
      : view_(view), place_(place), pairs_(pairs), length_(length), aligned_(aligned) {}

  // Times s .. s + kDepth - 1 of u, zero beyond the last.
  __device__ void Load(int s) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) u_[i] = LoadChannels(s + Row(i), Column(i));
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int n = i * Tile::kThreads + static_cast<int>(threadIdx.x);
      kernel_[i] = Weights(n / Tile::kWindow, place_.time - s - Tile::kDepth + n % Tile::kWindow);
    }
  }

  __device__ void Store(typename Tile::Shared& shared) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) StoreTerms(u_[i], shared, Row(i), Column(i));
    uint32_t* kernel = &shared.kernel[0][0];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int n = i * Tile::kThreads + static_cast<int>(threadIdx.x);
      if (n < Tile::kKernelTerms * Tile::kWindow) kernel[n] = kernel_[i];
    }
  }

 private:
  static constexpr int kWidth = 16 / sizeof(T);
  static constexpr int kRowVectors = Tile::kChannels / kWidth;
  static constexpr int kVectors = Tile::kDepth * kRowVectors / Tile::kThreads;
  static constexpr int kWords =
      (Tile::kKernelTerms * Tile::kWindow + Tile::kThreads - 1) / Tile::kThreads;
  using Vector = RowVector<T, kWidth>;

  static __device__ int Row(int i) {
    return (i * Tile::kThreads + static_cast<int>(threadIdx.x)) / kRowVectors;
  }
  static __device__ int Column(int i) {
    return (i * Tile::kThreads + static_cast<int>(threadIdx.x)) % kRowVectors * kWidth;
  }

  __device__ Vector LoadChannels(int s, int column) const {
    Vector vector = {};
    if (s >= view_.tokens) return vector;
    const T* from = view_.u + (place_.first_row + s) * view_.u_stride + place_.channel + column;
    if (aligned_) {
      if (column < place_.channels) vector = LoadVector<T, kWidth>(from);
    } else {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        if (column + e < place_.channels) vector.values[e] = from[e];
      }
    }
    return vector;
  }

  // A term of the weights of u_s and u_{s+1} in y_t, m = t - s: K[m], K[m - 1]; backward K[-m],
  // K[1 - m].
  __device__ uint32_t Weights(int term, int m) const {
    const int l = view_.backward ? 1 - m : m;
    if (term >= Tile::kKernelTerms || l < 0 || l >= length_) return 0;
    const uint32_t pair = pairs_[int64_t{term} * length_ + l];
    return view_.backward ? pair >> 16 | pair << 16 : pair;
  }

  static __device__ void StoreTerms(const RowVector<BF16, 8>& vector, typename Tile::Shared& shared,
                                    int row, int column) {
    StoreVector(vector, &shared.u[0][row][column]);
  }
  static __device__ void StoreTerms(const RowVector<float, 4>& vector,
                                    typename Tile::Shared& shared, int row, int column) {
    uint32_t low[Tile::kInputTerms];
    uint32_t high[Tile::kInputTerms];
    SplitBF16(vector.values[0], vector.values[1], low);
    SplitBF16(vector.values[2], vector.values[3], high);
#pragma unroll
    for (int term = 0; term < Tile::kInputTerms; ++term) {
      BF16* to = &shared.u[term][row][column];
      *reinterpret_cast<uint2*>(to) = make_uint2(low[term], high[term]);
    }
  }

  const LongConvView<T>& view_;
  const ToeplitzPlace& place_;
  const uint32_t* pairs_;
  int length_;
  bool aligned_;
  Vector u_[kVectors];
  uint32_t kernel_[kWords];
};

template <typename T>
struct ToeplitzArguments {
  LongConvView<T> view;
  const uint32_t* pairs;  // LongConvKernels::pairs()
  int length;             // of a term of a head
  int head_tiles;         // of the channels of a head
  bool aligned;           // rows of heads, to 16 bytes
};

// y of 32 times and the tile's channels, by one warp: two row tiles of c fragments.
template <typename T>
class ToeplitzSums {
 public:
  using Tile = ToeplitzTile<T>;
  static constexpr int kRowTiles = Tile::kWarpTimes / 16;
  static constexpr int kColumnTiles = Tile::kChannels / 8;

  __device__ ToeplitzSums() : time_(static_cast<int>(threadIdx.x) / kWarp * Tile::kWarpTimes) {}

  // Adds what the 16 times from `step` on of a tile in shared memory give.
  __device__ void Add(const typename Tile::Shared& shared, int step) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    uint32_t a[kRowTiles][Tile::kKernelTerms][4];
#pragma unroll
    for (int term = 0; term < Tile::kKernelTerms; ++term) {
      const uint32_t* kernel =
          &shared.kernel[term][Tile::kDepth + time_ - step] + lane / 4 - lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        a[i][term][0] = a[i][term][3] = kernel[i * 16];
        a[i][term][1] = kernel[i * 16 + 8];
        a[i][term][2] = kernel[i * 16 - 8];
      }
    }
#pragma unroll
    for (int j = 0; j < kColumnTiles; j += 2) {
      uint32_t b[2][Tile::kInputTerms][2];
#pragma unroll
      for (int term = 0; term < Tile::kInputTerms; ++term) {
        uint32_t r[4];
        LoadMatricesTransposed(r, &shared.u[term][step + lane % 16][j * 8 + lane / 16 * 8]);
        b[0][term][0] = r[0];
        b[0][term][1] = r[1];
        b[1][term][0] = r[2];
        b[1][term][1] = r[3];
      }
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        MultiplyTerms(sums_[i][j], a[i], b[0]);
        MultiplyTerms(sums_[i][j + 1], a[i], b[1]);
      }
    }
  }

  __device__ void Store(const LongConvView<T>& view, const ToeplitzPlace& place,
                        bool aligned) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int t = place.time + time_ + i * 16 + h * 8 + lane / 4;
        const int channels = t < view.tokens ? place.channels : 0;
        T* row = view.y + (place.first_row + t) * view.y_stride + place.channel;
#pragma unroll
        for (int j = 0; j < kColumnTiles; j += 2) {
          StoreTiles(&sums_[i][j][2 * h], &sums_[i][j + 1][2 * h], j * 8, channels, aligned, row);
        }
      }
    }
  }

 private:
  // This lane's pairs of two tiles of a row, which begin at `column`.
  static __device__ void StoreTiles(const float* left, const float* right, int column, int columns,
                                    bool aligned, T* row) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if constexpr (sizeof(T) == sizeof(BF16)) {
      const uint2 part = GatherRowPart(PackBF16(left[0], left[1]), PackBF16(right[0], right[1]));
      RowVector<T, 4> vector;
      std::memcpy(static_cast<void*>(&vector), &part, sizeof(vector));
      StoreColumns(vector, column + RowPart(lane), columns, aligned, row);
    } else {
      const int first = column + lane % 4 * 2;
      StoreColumns(RowVector<T, 2>{{left[0], left[1]}}, first, columns, aligned, row);
      StoreColumns(RowVector<T, 2>{{right[0], right[1]}}, first + 8, columns, aligned, row);
    }
  }

  // Those of them that are below `columns`: all or none where rows are aligned.
  template <int kWidth>
  static __device__ void StoreColumns(const RowVector<T, kWidth>& values, int column, int columns,
                                      bool aligned, T* row) {
    if (aligned) {
      if (column < columns) StoreVector(values, row + column);
      return;
    }
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (column + e < columns) row[column + e] = values.values[e];
    }
  }

  int time_;  // of the warp, in the tile
  float sums_[kRowTiles][kColumnTiles][4] = {};
};

// Blocks: (tiles of channels of all heads, sequences, tiles of times), the tiles of times with the
// most work first. Shared memory for two tiles: one is used while the next one comes.
template <typename T>
__global__ void __launch_bounds__(ToeplitzTile<T>::kThreads)
    LongConvToeplitzKernel(ToeplitzArguments<T> a) {
  using Tile = ToeplitzTile<T>;
  const LongConvView<T>& view = a.view;
  const int head = static_cast<int>(blockIdx.x) / a.head_tiles;
  const int within = static_cast<int>(blockIdx.x) % a.head_tiles * Tile::kChannels;
  const int tile = static_cast<int>(view.backward ? blockIdx.z : gridDim.z - 1 - blockIdx.z);
  const ToeplitzPlace place = {.first_row = int64_t{blockIdx.y} * view.tokens,
                               .channel = head * view.head_channels + within,
                               .channels = min(view.head_channels - within, Tile::kChannels),
                               .time = tile * Tile::kTimes};
  const int begin = view.backward ? place.time : 0;
  const int end = view.backward ? view.tokens : min(view.tokens, place.time + Tile::kTimes);
  const int warp_time = place.time + static_cast<int>(threadIdx.x) / kWarp * Tile::kWarpTimes;

  auto* shared = reinterpret_cast<typename Tile::Shared*>(SharedMemory());
  ToeplitzStage<T> stage(view, place, a.pairs + int64_t{head} * Tile::kKernelTerms * a.length,
                         a.length, a.aligned);
  ToeplitzSums<T> sums;
  stage.Load(begin);
  stage.Store(shared[0]);
  int turn = 0;
  for (int s = begin; s < end; s += Tile::kDepth, turn ^= 1) {
    __syncthreads();
    const bool more = s + Tile::kDepth < end;
    if (more) stage.Load(s + Tile::kDepth);
#pragma unroll
    for (int step = 0; step < Tile::kDepth; step += 16) {
      // Nothing is on the other side of the diagonal, nor beyond the last time.
      const bool zero =
          view.backward ? s + step + 15 < warp_time : s + step > warp_time + Tile::kWarpTimes - 1;
      if (!zero && warp_time < view.tokens) sums.Add(shared[turn], step);
    }
    if (more) stage.Store(shared[turn ^ 1]);
  }
  sums.Store(view, place, a.aligned);
}

template <typename T>
void Multiply(Device& device, const LongConvCall& call) {
  using Tile = ToeplitzTile<T>;
  static_assert(Tile::kKernelTerms ==
                KernelTerms(sizeof(T) == sizeof(BF16) ? DType::kBF16 : DType::kF32));
  const LongConvKernels& constants = call.constants;
  const int64_t head_channels = constants.channels() / constants.heads();
  const int64_t head_tiles = (head_channels + Tile::kChannels - 1) / Tile::kChannels;
  const int64_t time_tiles = (call.tokens() + Tile::kTimes - 1) / Tile::kTimes;
  constexpr int64_t kVector = 16 / sizeof(T);
  const ToeplitzArguments<T> arguments = {.view = MakeView<T>(call),
                                          .pairs = constants.pairs(),
                                          .length = static_cast<int>(constants.longest() + 1),
                                          .head_tiles = static_cast<int>(head_tiles),
                                          .aligned = head_channels % kVector == 0 &&
                                                     RowsAreAligned(call.u, kVector) &&
                                                     RowsAreAligned(call.y, kVector)};
  Launch(device, "long_conv_toeplitz", LongConvToeplitzKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(constants.heads() * head_tiles),
                         static_cast<unsigned>(call.sequences), static_cast<unsigned>(time_tiles)),
          .threads = dim3(Tile::kThreads),
          .shared_bytes = 2 * sizeof(typename Tile::Shared)},
         arguments);
}

}  // namespace

void LongConvToeplitz(Device& device, const LongConvCall& call) {
  if (call.u.dtype == DType::kBF16) {
    Multiply<BF16>(device, call);
  } else {
    Multiply<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
