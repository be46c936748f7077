// The operands of the Toeplitz product on their way from device memory to shared memory: a tile of
// u and the part of the kernel that meets it.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_STAGE_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_STAGE_CUH_

#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/split_bf16.cuh"
#include "kernels/cuda/conv/long_conv_view.cuh"

namespace hippodrome::cuda {

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

  // pairs: as LongConvConstants::pairs() of the block's head, terms of `length` elements; aligned:
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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_STAGE_CUH_
