// Kernels of AttentionSequence.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_SEQUENCE_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_SEQUENCE_CUH_

#include "kernels/cuda/attention/attention_query.cuh"
#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/attention_view.cuh"

namespace hippodrome::cuda {

// `tokens` rows of each sequence, the first at position `start`.
template <typename T>
struct SequenceView {
  AttentionView<T> view;
  int64_t tokens;
  int64_t start;
};

inline constexpr int kStoreThreads = 128;

// Stores the keys, rotated, and the values of one row (blockIdx.x) in its page, kCount elements by
// each thread at a time.
template <typename T, int kCount>
__global__ void __launch_bounds__(kStoreThreads) StoreKeyValueRows(SequenceView<T> s) {
  const AttentionView<T>& view = s.view;
  const int64_t row = blockIdx.x;
  const int64_t sequence = row / s.tokens;
  const int64_t position = s.start + row % s.tokens;
  if (view.PageTable(sequence)[0] < 0) return;
  T* key = view.Key(sequence, position, 0);
  const int units = view.head_dim / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < view.heads * units; i += kStoreThreads) {
    const int head = i / units;
    StoreKeyValue<kCount>(view, row, head, i % units * kCount, position,
                          key + 2 * head * view.value_offset());
  }
}

// One query: row blockIdx.x, head blockIdx.y. Shared memory: kQueryShared(head_dim) bytes.
template <typename T, typename Layout>
__global__ void __launch_bounds__(kQueryThreads) AttendRows(SequenceView<T> s, float scale) {
  const AttentionView<T>& view = s.view;
  const int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int64_t sequence = row / s.tokens;
  const int64_t position = s.start + row % s.tokens;
  if (view.PageTable(sequence)[0] < 0) return;
  const BlockSoftmax all = AttendKeys<Layout>(
      view, {.row = row, .sequence = sequence, .head = head, .position = position, .scale = scale},
      0, position + 1);
  for (int j = static_cast<int>(threadIdx.x); j < view.head_dim; j += kQueryThreads) {
    view.Output(row, head)[j] = FromFloat<T>(all.Value(j) / all.sum);
  }
}

// Starts to copy `count` rows (keys or values) of a tile to shared memory, zeros after them.
template <int kHeadDim>
__device__ inline void CopyTile(const BF16* from, int count, BF16* to) {
  constexpr int kUnits = kHeadDim / kVector<BF16>;
  constexpr int kThreads = kTileWarps * kWarp;
  static_assert(kTileKeys * kUnits % kThreads == 0);
#pragma unroll
  for (int n = 0; n < kTileKeys * kUnits; n += kThreads) {
    const int i = n + static_cast<int>(threadIdx.x);
    const int row = i / kUnits;
    CopyAsync16(to + row * kTileStride<kHeadDim> + i % kUnits * kVector<BF16>,
                from + i * kVector<BF16>, row < count);
  }
  CommitCopies();
}

// Queries [row, row + count) of one head, rotated, and zeros after them.
template <int kHeadDim>
__device__ inline void LoadQueryTile(const AttentionView<BF16>& view, int64_t row, int count,
                                     int head, int position, BF16* to) {
  constexpr int kUnits = kHeadDim / kVector<BF16>;
  for (int i = static_cast<int>(threadIdx.x); i < kTileQueries * kUnits; i += kTileWarps * kWarp) {
    const int query = i / kUnits;
    const int j = i % kUnits * kVector<BF16>;
    float x[kVector<BF16>] = {};
    if (query < count) {
      LoadRotated(view.Projected(row + query, 0, head), j, view.rotary, position + query, x);
    }
    StoreElements(x, to + query * kTileStride<kHeadDim> + j);
  }
}

// o = values / sum for the warp's first `count` queries; the four lanes of a row have its sum.
template <int kHeadDim>
__device__ inline void StoreOutputTile(const AttentionView<BF16>& view, int64_t row, int count,
                                       int head, const TileSums<kHeadDim>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = sums.sum[i][h];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      const int query = i * 16 + h * 8 + lane / 4;
      if (query >= count) continue;
      const float factor = 1 / sum;
      auto* to = reinterpret_cast<uint32_t*>(view.Output(row + query, head) + lane % 4 * 2);
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        const float* c = sums.values[i][n] + 2 * h;
        to[n * 4] = PackBF16(c[0] * factor, c[1] * factor);
      }
    }
  }
}

template <int kHeadDim>
constexpr size_t kTileShared =
    (kTileQueries + 2 * kTileKeys) * kTileStride<kHeadDim> * sizeof(BF16);

// kTileQueries queries of one head (blockIdx.y) of one sequence (blockIdx.z); the last queries,
// which see the most keys, first. scale: of the scores, times log2(e).
// REQUIRES: head_dim == kHeadDim, page_tokens == kTileKeys.
template <int kHeadDim>
__global__ void __launch_bounds__(kTileWarps* kWarp, 2)
    AttendTiles(SequenceView<BF16> s, float scale) {
  const AttentionView<BF16>& view = s.view;
  const int head = static_cast<int>(blockIdx.y);
  const int64_t sequence = blockIdx.z;
  const int32_t* pages = view.PageTable(sequence);
  if (pages[0] < 0) return;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileQueries;
  const int count = min(kTileQueries, static_cast<int>(s.tokens) - first);
  const int64_t row = sequence * s.tokens + first;
  const int position = static_cast<int>(s.start) + first;
  const int end = position + count;  // of the keys

  BF16* q = reinterpret_cast<BF16*>(SharedMemory());
  BF16* k = q + kTileQueries * kTileStride<kHeadDim>;
  BF16* v = k + kTileKeys * kTileStride<kHeadDim>;
  const BF16* keys = view.Keys(pages[0], head);
  CopyTile<kHeadDim>(keys, end, k);
  LoadQueryTile<kHeadDim>(view, row, count, head, position, q);

  const int offset = static_cast<int>(threadIdx.x) / kWarp * kWarpQueries;  // of the warp's queries
  TileSums<kHeadDim> sums;
  sums.Clear();
  for (int left = end; left > 0; left -= kTileKeys) {
    // Each wait is for all copies: one is under way at a time, behind the product of the other.
    WaitForCopies<0>();
    __syncthreads();
    CopyTile<kHeadDim>(keys + kTileKeys * kHeadDim, left, v);
    // The first key against the warp's first query, which may see none of the tile.
    const int distance = left - count + offset;
    const bool sees = offset < count && distance + kWarpQueries > 0;
    TileProbabilities probabilities;
    if (sees) {
      TileScores scores;
      ScoreTile<kHeadDim>(q + offset * kTileStride<kHeadDim>, k, scores);
      if (distance < kTileKeys - 1) MaskTile(distance, scores);
      SoftmaxTile<kHeadDim>(scores, scale, probabilities, sums);
    }
    WaitForCopies<0>();
    __syncthreads();
    if (left > kTileKeys) {
      keys = view.Keys(*++pages, head);
      CopyTile<kHeadDim>(keys, left - kTileKeys, k);
    }
    if (sees) AddValueTile<kHeadDim>(probabilities, v, sums);
  }
  StoreOutputTile<kHeadDim>(view, row + offset, count - offset, head, sums);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_SEQUENCE_CUH_
