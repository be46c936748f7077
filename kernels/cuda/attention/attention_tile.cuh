// The products of one warp's queries with one tile of keys and values on tensor cores, and the
// running softmax between them ("FlashAttention-2", Dao, 2023).
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_

#include <type_traits>

#include "kernels/cuda/attention/attention_query.cuh"
#include "kernels/cuda/attention/attention_view.cuh"
#include "kernels/cuda/base/mma.cuh"

namespace hippodrome::cuda {

inline constexpr int kTileKeys = 64;  // keys of a tile: a page
inline constexpr int kTileWarps = 4;  // of a block
inline constexpr int kRowTiles = 2;   // of 16 queries each, for each warp
inline constexpr int kWarpQueries = 16 * kRowTiles;
inline constexpr int kTileQueries = kTileWarps * kWarpQueries;
inline constexpr int kKeyTiles = kTileKeys / 8;

// Rows of a tile in shared memory are this many elements apart: an odd number of 16-byte units, so
// that eight rows lie in different banks.
template <int kHeadDim>
inline constexpr int kTileStride = kHeadDim + 8;

// c fragments of 16 queries by 8 keys.
using TileScores = float[kRowTiles][kKeyTiles][4];
// The same as bf16: two c fragments side by side are an a fragment of 16 queries by 16 keys.
using TileProbabilities = uint32_t[kRowTiles][kKeyTiles / 2][4];

// What a warp knows about its queries so far. Of each row tile a lane has rows g and g + 8.
template <int kHeadDim>
struct TileSums {
  float max[kRowTiles][2];  // of the scores
  float sum[kRowTiles][2];  // of this lane's probabilities
  float values[kRowTiles][kHeadDim / 8][4];

  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      max[i][0] = max[i][1] = -1e38f;  // finite, so that differences are never undefined
      sum[i][0] = sum[i][1] = 0;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) values[i][n][c] = 0;
      }
    }
  }

  // Sets the sums of probabilities.
  __device__ void Fill(float probability) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) sum[i][0] = sum[i][1] = probability;
  }
};

// Calls launch(head_dim as an integral_constant); false if there are no tiles for it.
template <typename Launcher>
bool WithTiles(int head_dim, const Launcher& launch) {
  switch (head_dim) {
    case 16:
      launch(std::integral_constant<int, 16>());
      return true;
    case 32:
      launch(std::integral_constant<int, 32>());
      return true;
    case 64:
      launch(std::integral_constant<int, 64>());
      return true;
    case 80:
      launch(std::integral_constant<int, 80>());
      return true;
    case 96:
      launch(std::integral_constant<int, 96>());
      return true;
    case 128:
      launch(std::integral_constant<int, 128>());
      return true;
    default:
      return false;
  }
}

// scores = q k^T.  q: the warp's queries, k: the tile's keys, rows of kTileStride.
template <int kHeadDim>
__device__ inline void ScoreTile(const BF16* q, const BF16* k, TileScores& scores) {
  constexpr int kStride = kTileStride<kHeadDim>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  q += lane % 16 * kStride + lane / 16 * 8;
  k += (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) scores[i][n][c] = 0;
    }
  }
#pragma unroll
  for (int j = 0; j < kHeadDim; j += 16) {
    uint32_t a[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) LoadMatrices(a[i], q + i * 16 * kStride + j);
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
      uint32_t r[4];
      LoadMatrices(r, k + n * 8 * kStride + j);
      const uint32_t b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        MmaBF16(scores[i][n], a[i], b[0]);
        MmaBF16(scores[i][n + 1], a[i], b[1]);
      }
    }
  }
}

// Hides keys after the query. `distance`: the position of the warp's first query minus that of the
// tile's first key.
__device__ inline void MaskTile(int distance, TileScores& scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int last =
      distance + lane / 4 - lane % 4 * 2;  // c0 of key tile n is visible to 8 n <= last
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (n * 8 + c % 2 > last + i * 16 + c / 2 * 8) scores[i][n][c] = -INFINITY;
      }
    }
  }
}

// Hides the whole tile from the warp's queries from the `first`-th on.
__device__ inline void HideTile(int first, TileScores& scores) {
  const int query = static_cast<int>(threadIdx.x) % kWarp / 4;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (i * 16 + c / 2 * 8 + query < first) continue;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) scores[i][n][c] = -INFINITY;
    }
  }
}

// probabilities = 2^(scale (scores - max)) with the new maxima, to which the sums are brought.
template <int kHeadDim>
__device__ inline void SoftmaxTile(const TileScores& scores, float scale,
                                   TileProbabilities& probabilities, TileSums<kHeadDim>& sums) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float max = sums.max[i][h];
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        max = fmaxf(max, fmaxf(scores[i][n][2 * h], scores[i][n][2 * h + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 1));
      max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 2));
      const float factor = FastExp2((sums.max[i][h] - max) * scale);
      sums.max[i][h] = max;
      const float scaled_max = max * scale;
      float sum = sums.sum[i][h] * factor;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        const float p0 = FastExp2(fmaf(scores[i][n][2 * h], scale, -scaled_max));
        const float p1 = FastExp2(fmaf(scores[i][n][2 * h + 1], scale, -scaled_max));
        sum += p0 + p1;
        probabilities[i][n / 2][n % 2 * 2 + h] = PackBF16(p0, p1);
      }
      sums.sum[i][h] = sum;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        sums.values[i][n][2 * h] *= factor;
        sums.values[i][n][2 * h + 1] *= factor;
      }
    }
  }
}

// sums.values += probabilities v.
template <int kHeadDim>
__device__ inline void AddValueTile(const TileProbabilities& probabilities, const BF16* v,
                                    TileSums<kHeadDim>& sums) {
  constexpr int kStride = kTileStride<kHeadDim>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  v += lane % 16 * kStride + lane / 16 * 8;
#pragma unroll
  for (int n = 0; n < kKeyTiles / 2; ++n) {
#pragma unroll
    for (int j = 0; j < kHeadDim; j += 16) {
      uint32_t r[4];
      LoadMatricesTransposed(r, v + n * 16 * kStride + j);
      const uint32_t b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        MmaBF16(sums.values[i][j / 8], probabilities[i][n], b[0]);
        MmaBF16(sums.values[i][j / 8 + 1], probabilities[i][n], b[1]);
      }
    }
  }
}

// The rows of parts of sequences in such tiles: kernels of AttentionSequence.

// A row of a pass.
struct PartRow {
  int64_t row;
  int32_t part;
  int64_t position;
};

template <typename T>
struct SequenceView {
  AttentionView<T> view;
  const SequencePart* parts;  // adjacent, in the order of their rows
  int32_t part_count;

  // The first key in the table of a part.
  __device__ int TableStart(int64_t part) const { return view.FirstSeen(parts[part].start); }
  // The i-th row of all parts.
  __device__ PartRow RowAt(int64_t i) const {
    const int64_t row = parts[0].first_row + i;
    int32_t low = 0;
    for (int32_t count = part_count; count > 1;) {
      const int32_t half = count / 2;
      if (parts[low + half].first_row <= row) {
        low += half;
        count -= half;
      } else {
        count = half;
      }
    }
    return {row, low, parts[low].start + (row - parts[low].first_row)};
  }
};

inline constexpr int kStoreThreads = 128;

// Stores the keys, rotated, and the values of one row (of blockIdx.x) in its page, kCount elements
// by each thread at a time.
template <typename T, int kCount>
__global__ void __launch_bounds__(kStoreThreads) StoreKeyValueRows(SequenceView<T> s) {
  const AttentionView<T>& view = s.view;
  const auto [row, part, position] = s.RowAt(blockIdx.x);
  if (s.parts[part].slot < 0) return;
  T* key = view.Key(part, position - s.TableStart(part), 0);
  const int units = view.head_dim / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < view.heads * units; i += kStoreThreads) {
    const int head = i / units;
    StoreKeyValue<kCount>(view, row, head, i % units * kCount, position,
                          key + 2 * head * view.value_offset());
  }
}

// One query: row of blockIdx.x, head blockIdx.y. Shared memory: kQueryShared(head_dim) bytes.
template <typename T, typename Layout>
__global__ void __launch_bounds__(kQueryThreads) AttendRows(SequenceView<T> s, float scale) {
  const AttentionView<T>& view = s.view;
  const auto [row, part, position] = s.RowAt(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  if (s.parts[part].slot < 0) return;
  const int start = s.TableStart(part);
  const BlockSoftmax all = AttendKeys<Layout>(
      view, {.row = row, .sequence = part, .head = head, .position = position, .scale = scale},
      view.FirstSeen(static_cast<int>(position)) - start, position + 1 - start);
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
      const float factor = 1 / sum;
      const auto pair = [&](int n) {
        const float* c = sums.values[i][n] + 2 * h;
        return PackBF16(c[0] * factor, c[1] * factor);
      };
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; n += 2) {
        const uint2 part = GatherRowPart(pair(n), pair(n + 1));
        if (query >= count) continue;
        BF16* to = view.Output(row + query, head) + n * 8 + RowPart(lane);
        *reinterpret_cast<uint2*>(to) = part;
      }
    }
  }
}

template <int kHeadDim>
constexpr size_t kTileShared =
    (kTileQueries + 2 * kTileKeys) * kTileStride<kHeadDim> * sizeof(BF16);

// kTileQueries queries of one head (blockIdx.y) of one part (blockIdx.z); the last queries,
// which see the most keys, first. scale: of the scores, times log2(e).
// REQUIRES: head_dim == kHeadDim, page_tokens == kTileKeys.
template <int kHeadDim>
__global__ void __launch_bounds__(kTileWarps* kWarp, 2)
    AttendTiles(SequenceView<BF16> s, float scale) {
  const AttentionView<BF16>& view = s.view;
  const int head = static_cast<int>(blockIdx.y);
  const SequencePart part = s.parts[blockIdx.z];
  const int blocks = (part.tokens + kTileQueries - 1) / kTileQueries;
  const int first = (blocks - 1 - static_cast<int>(blockIdx.x)) * kTileQueries;
  if (part.slot < 0 || first < 0) return;
  const int count = min(kTileQueries, part.tokens - first);
  const int64_t row = int64_t{part.first_row} + first;
  const int position = part.start + first;
  const int seen = view.FirstSeen(position);
  const int end = position + count;  // of the keys
  const int32_t* pages = view.PageTable(blockIdx.z) + (seen - s.TableStart(blockIdx.z)) / kTileKeys;

  BF16* q = reinterpret_cast<BF16*>(SharedMemory());
  BF16* k = q + kTileQueries * kTileStride<kHeadDim>;
  BF16* v = k + kTileKeys * kTileStride<kHeadDim>;
  const BF16* keys = view.Keys(pages[0], head);
  CopyTile<kHeadDim>(keys, end - seen, k);
  LoadQueryTile<kHeadDim>(view, row, count, head, position, q);

  const int offset = static_cast<int>(threadIdx.x) / kWarp * kWarpQueries;  // of the warp's queries
  TileSums<kHeadDim> sums;
  sums.Clear();
  for (int left = end - seen; left > 0; left -= kTileKeys) {
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
      // From this query on the tile is before the window.
      const int hidden = view.window - distance + kTileKeys - 1;
      if (hidden < kWarpQueries) HideTile(hidden, scores);
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

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_
