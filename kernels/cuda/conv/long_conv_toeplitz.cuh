// The long convolution as a product with the Toeplitz matrix of the kernel: y = M u, where M[t, s]
// is K[t - s], or K[s - t] backward, and zero on the other side of the diagonal. M is made on the
// way: an A fragment of 16 x 16 elements depends on t - s alone, so that a lane reads three words
// of the kernel for it, of which neighbouring fragments share two.
//
// With bf16 activations u is exact and the kernel has two bf16 terms (16 bits); with f32 both have
// three (24 bits), which takes six products.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_TOEPLITZ_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_TOEPLITZ_CUH_

#include "kernels/cuda/conv/long_conv_stage.cuh"

namespace hippodrome::cuda {

template <typename T>
struct ToeplitzArguments {
  LongConvView<T> view;
  const uint32_t* pairs;  // LongConvConstants::pairs()
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
        if (t >= view.tokens) continue;
        T* row = view.y + (place.first_row + t) * view.y_stride + place.channel;
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) {
          StorePair(sums_[i][j][2 * h], sums_[i][j][2 * h + 1], j * 8 + lane % 4 * 2,
                    place.channels, aligned, row);
        }
      }
    }
  }

 private:
  static __device__ void StorePair(float first, float second, int column, int columns, bool aligned,
                                   T* row) {
    if (column >= columns) return;
    const RowVector<T, 2> pair = {{FromFloat<T>(first), FromFloat<T>(second)}};
    if (aligned) return StoreVector(pair, row + column);
    row[column] = pair.values[0];
    if (column + 1 < columns) row[column + 1] = pair.values[1];
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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_TOEPLITZ_CUH_
