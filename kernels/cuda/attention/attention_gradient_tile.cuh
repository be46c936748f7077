// Products of small matrices in shared memory, in f32: what the kernels of attention_gradient.cuh
// are made of. A block has 16 x 16 threads; thread (y, x) has rows y + 16 i and columns x + 16 j of
// every result.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_TILE_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_TILE_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

inline constexpr int kTileSide = 16;
inline constexpr int kGradientThreads = kTileSide * kTileSide;

// Tiles for heads of up to kWidth elements. Rows are padded, so that the same column of different
// rows lies in different banks.
template <int kWidth>
struct GradientTile {
  static constexpr int kRows = kWidth <= 64 ? 64 : 32;  // queries, and keys
  static constexpr int kStride = kWidth + 1;
  static constexpr int kScoreStride = kRows + 1;
  static constexpr int kPerThread = kRows / kTileSide;  // rows, and columns of scores
  static constexpr int kColumns = kWidth / kTileSide;   // of a thread, of rows of a head
  static constexpr int kFloats = kRows * kStride;       // of rows of a head
  static constexpr int kScoreFloats = kRows * kScoreStride;

  using Scores = float[kPerThread][kPerThread];
  using Sums = float[kPerThread][kColumns];
};

__device__ inline int TileY() { return static_cast<int>(threadIdx.x) / kTileSide; }
__device__ inline int TileX() { return static_cast<int>(threadIdx.x) % kTileSide; }

// Rows [0, count) of `width` floats, zeros around them.
template <int kWidth>
__device__ inline void LoadTile(const float* from, int64_t stride, int count, int width,
                                float* tile) {
  using Tile = GradientTile<kWidth>;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kRows * kWidth; i += kGradientThreads) {
    const int row = i / kWidth;
    const int column = i % kWidth;
    tile[row * Tile::kStride + column] =
        row < count && column < width ? from[row * stride + column] : 0.0f;
  }
}

// scores = a b^T
template <int kWidth>
__device__ inline void MultiplyTiles(const float* a, const float* b,
                                     typename GradientTile<kWidth>::Scores& scores) {
  using Tile = GradientTile<kWidth>;
  constexpr int n = Tile::kPerThread;
#pragma unroll
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < n; ++j) scores[i][j] = 0;
  }
  a += TileY() * Tile::kStride;
  b += TileX() * Tile::kStride;
#pragma unroll 4
  for (int k = 0; k < kWidth; ++k) {
    float x[n];
    float y[n];
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = a[i * kTileSide * Tile::kStride + k];
#pragma unroll
    for (int j = 0; j < n; ++j) y[j] = b[j * kTileSide * Tile::kStride + k];
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int j = 0; j < n; ++j) scores[i][j] = fmaf(x[i], y[j], scores[i][j]);
    }
  }
}

// Puts scores into shared memory, [rows of a, rows of b], or its transpose.
template <int kWidth>
__device__ inline void StoreScores(const typename GradientTile<kWidth>::Scores& scores,
                                   bool transposed, float* to) {
  using Tile = GradientTile<kWidth>;
#pragma unroll
  for (int i = 0; i < Tile::kPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kPerThread; ++j) {
      const int row = TileY() + i * kTileSide;
      const int column = TileX() + j * kTileSide;
      to[transposed ? column * Tile::kScoreStride + row : row * Tile::kScoreStride + column] =
          scores[i][j];
    }
  }
}

// sums += scores x, the scores in shared memory.
template <int kWidth>
__device__ inline void AddProduct(const float* scores, const float* x,
                                  typename GradientTile<kWidth>::Sums& sums) {
  using Tile = GradientTile<kWidth>;
  scores += TileY() * Tile::kScoreStride;
  x += TileX();
#pragma unroll 2
  for (int k = 0; k < Tile::kRows; ++k) {
    float weights[Tile::kPerThread];
#pragma unroll
    for (int i = 0; i < Tile::kPerThread; ++i) {
      weights[i] = scores[i * kTileSide * Tile::kScoreStride + k];
    }
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      const float value = x[k * Tile::kStride + j * kTileSide];
#pragma unroll
      for (int i = 0; i < Tile::kPerThread; ++i) {
        sums[i][j] = fmaf(weights[i], value, sums[i][j]);
      }
    }
  }
}

// store(row, column, sum) for the sums of rows [0, count) and columns [0, width).
template <int kWidth, typename Store>
__device__ inline void ForEachSum(const typename GradientTile<kWidth>::Sums& sums, int count,
                                  int width, const Store& store) {
  using Tile = GradientTile<kWidth>;
#pragma unroll
  for (int i = 0; i < Tile::kPerThread; ++i) {
    const int row = TileY() + i * kTileSide;
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      const int column = TileX() + j * kTileSide;
      if (row < count && column < width) store(row, column, sums[i][j]);
    }
  }
}

// Over the 16 threads of a row; every one gets the result.
__device__ inline float RowSum(float x) {
  for (int mask = kTileSide / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kAllLanes, x, mask);
  return x;
}
__device__ inline float RowMax(float x) {
  for (int mask = kTileSide / 2; mask > 0; mask /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, mask));
  }
  return x;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_TILE_CUH_
