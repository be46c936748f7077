// BidirectionalAttention: tile by tile, or query by query for the shapes that tiles do not cover,
// by the tiles and the rows of attention_tile.cuh over keys and values that stay where the
// projection put them.
#include "kernels/cuda/attention/dense_attention.h"

#include <cassert>

#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

// `tokens` rows of each sequence; the view has no pages.
template <typename T>
struct BidirectionalView {
  AttentionView<T> view;
  const int32_t* mask;  // rows of mask_stride
  int64_t mask_stride;
  int tokens;
};

// Adds one key to the sums of each group of threads, the keys from `first` on, of which keys
// `count` are there. rows: the first key, rows of view.qkv_stride.
template <typename Layout, typename T>
__device__ inline void AddMaskedKeys(const AttentionView<T>& view, const T* rows,
                                     const int32_t* mask, int first, int count,
                                     const float (&q)[Layout::kCount],
                                     RunningSoftmax<Layout>& softmax) {
  const int token = first + Layout::Group();
  const int64_t read = min(token, count - 1);
  const T* key = rows + read * view.qkv_stride;
  float k[Layout::kCount];
  float v[Layout::kCount];
  Layout::Load(key, view.head_dim, k);
  Layout::Load(key + view.heads * view.head_dim, view.head_dim, v);
  float score = 0;
#pragma unroll
  for (int i = 0; i < Layout::kCount; ++i) score = fmaf(q[i], k[i], score);
#pragma unroll
  for (int lanes = Layout::kLanes / 2; lanes > 0; lanes /= 2) {
    score += __shfl_xor_sync(kAllLanes, score, lanes);
  }
  if (token >= count || mask[read] == 0) score = -INFINITY;
  softmax.Raise(fmaxf(softmax.max, score));
  const float p = FastExp2(score - softmax.max);
  softmax.sum += p;
#pragma unroll
  for (int i = 0; i < Layout::kCount; ++i) softmax.values[i] = fmaf(p, v[i], softmax.values[i]);
}

// One query: token blockIdx.x of sequence blockIdx.z, head blockIdx.y. Shared memory:
// QueryShared(head_dim) bytes.
template <typename T, typename Layout>
__global__ void __launch_bounds__(kQueryThreads)
    AttendMaskedRows(BidirectionalView<T> s, float scale) {
  const AttentionView<T>& view = s.view;
  const int64_t sequence = blockIdx.z;
  const int64_t row = sequence * s.tokens + blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  float q[Layout::kCount];
  LoadQuery<Layout>(
      view, {.row = row, .sequence = sequence, .head = head, .position = 0, .scale = scale}, q);
  const T* rows = view.Projected(sequence * s.tokens, 1, head);
  const int32_t* mask = s.mask + sequence * s.mask_stride;
  RunningSoftmax<Layout> softmax;
  for (int first = 0; first < s.tokens; first += Layout::kGroups) {
    AddMaskedKeys<Layout>(view, rows, mask, first, s.tokens, q, softmax);
  }
  const BlockSoftmax all = MergeGroups(softmax, view.head_dim);
  const float factor = all.sum > 0 ? 1 / all.sum : 0;  // without unmasked keys
  for (int j = static_cast<int>(threadIdx.x); j < view.head_dim; j += kQueryThreads) {
    view.Output(row, head)[j] = FromFloat<T>(all.Value(j) * factor);
  }
}

// Starts to copy a tile of rows of qkv (keys or values), `count` of them, to shared memory, zeros
// after them. Addresses are made anew for every tile: the sums need the registers.
template <int kHeadDim>
__device__ inline void CopyProjectedTile(const BF16* from, int64_t stride, int count, BF16* to) {
  constexpr int kUnits = kHeadDim / kVector<BF16>;
  constexpr int kThreads = kTileWarps * kWarp;
#pragma unroll 1
  for (int i = Forget(static_cast<int>(threadIdx.x)); i < kTileKeys * kUnits; i += kThreads) {
    const int row = i / kUnits;
    const int column = i % kUnits * kVector<BF16>;
    CopyAsync16(to + row * kTileStride<kHeadDim> + column, from + row * stride + column,
                row < count);
  }
  CommitCopies();
}

// Hides the keys of a tile whose bit of `visible` is zero.
__device__ inline void HideKeys(const uint32_t* visible, TileScores& scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const uint32_t bits[2] = {visible[0] >> lane % 4 * 2, visible[1] >> lane % 4 * 2};
#pragma unroll
  for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if ((bits[n / 4] >> (n % 4 * 8 + e) & 1) != 0) continue;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        scores[i][n][e] = -INFINITY;
        scores[i][n][2 + e] = -INFINITY;
      }
    }
  }
}

// Queries, keys, values, and which keys are visible.
template <int kHeadDim>
constexpr size_t kMaskedTileShared = kTileShared<kHeadDim> + kTileKeys / 8;

// kTileQueries queries (blockIdx.x) of one head (blockIdx.y) of one sequence (blockIdx.z). scale:
// of the scores, times log2(e). REQUIRES: head_dim == kHeadDim.
template <int kHeadDim>
__global__ void __launch_bounds__(kTileWarps* kWarp, 2)
    AttendMaskedTiles(BidirectionalView<BF16> s, float scale) {
  const AttentionView<BF16>& view = s.view;
  const int head = static_cast<int>(blockIdx.y);
  const int64_t sequence = blockIdx.z;
  const int first = static_cast<int>(blockIdx.x) * kTileQueries;
  const int count = min(kTileQueries, s.tokens - first);
  const int64_t begin = sequence * s.tokens;  // row of the first key
  const int thread = static_cast<int>(threadIdx.x);
  const int offset = thread / kWarp * kWarpQueries;  // of the warp's queries

  BF16* q = reinterpret_cast<BF16*>(SharedMemory());
  BF16* k = q + kTileQueries * kTileStride<kHeadDim>;
  BF16* v = k + kTileKeys * kTileStride<kHeadDim>;
  auto* visible = reinterpret_cast<uint32_t*>(v + kTileKeys * kTileStride<kHeadDim>);
  LoadQueryTile<kHeadDim>(view, begin + first, count, head, 0, q);
  TileSums<kHeadDim> sums;
  sums.Clear();
  bool any = false;
  for (int key = 0; key < s.tokens; key += kTileKeys) {
    const int keys = min(kTileKeys, s.tokens - key);
    const bool own = thread < keys && s.mask[sequence * s.mask_stride + key + thread] != 0;
    // A tile without visible keys adds nothing. Also: everyone has read the last tile.
    if (__syncthreads_or(own ? 1 : 0) == 0) continue;
    any = true;
    const unsigned bits = __ballot_sync(kAllLanes, own ? 1 : 0);
    if (thread < kTileKeys && thread % kWarp == 0) visible[thread / kWarp] = bits;
    CopyProjectedTile<kHeadDim>(view.Projected(begin + key, 1, head), view.qkv_stride, keys, k);
    CopyProjectedTile<kHeadDim>(view.Projected(begin + key, 2, head), view.qkv_stride, keys, v);
    WaitForCopies<1>();
    __syncthreads();
    TileScores scores;
    ScoreTile<kHeadDim>(q + offset * kTileStride<kHeadDim>, k, scores);
    HideKeys(visible, scores);
    TileProbabilities probabilities;
    SoftmaxTile<kHeadDim>(scores, scale, probabilities, sums);
    WaitForCopies<0>();
    __syncthreads();
    AddValueTile<kHeadDim>(probabilities, v, sums);
  }
  if (!any) sums.Fill(1);  // of zero values: o is zero
  StoreOutputTile<kHeadDim>(view, begin + first + offset, count - offset, head, sums);
}

constexpr const char* kName = "attention_bidirectional";

template <typename T>
BidirectionalView<T> MakeView(const BidirectionalAttentionCall& call) {
  const AttentionView<T> view = {.qkv = static_cast<const T*>(call.qkv.data),
                                 .qkv_stride = call.qkv.stride,
                                 .o = static_cast<T*>(call.o.data),
                                 .o_stride = call.o.stride,
                                 .pages = nullptr,
                                 .page_tables = nullptr,
                                 .table_stride = 0,
                                 .rotary = {nullptr, 0},
                                 .heads = static_cast<int>(call.shape.heads),
                                 .head_dim = static_cast<int>(call.shape.head_dim),
                                 .page_tokens = 0,
                                 .window = kNoWindow};
  return {.view = view,
          .mask = static_cast<const int32_t*>(call.mask.data),
          .mask_stride = call.mask.stride,
          .tokens = static_cast<int>(call.mask.cols)};
}

// For each `queries` queries of each head of each sequence.
dim3 Blocks(const BidirectionalAttentionCall& call, int64_t queries) {
  return dim3(static_cast<unsigned>((call.mask.cols + queries - 1) / queries),
              static_cast<unsigned>(call.shape.heads), static_cast<unsigned>(call.mask.rows));
}

// Tiles of wider heads need more registers than a thread has.
constexpr int kWidestTile = 80;

// False if there are no tiles for the shape.
bool AttendByTiles(Device& device, const BidirectionalAttentionCall& call, float scale) {
  if (call.qkv.dtype != DType::kBF16 || call.shape.head_dim > kWidestTile) return false;
  const BidirectionalView<BF16> s = MakeView<BF16>(call);
  if (!IsAligned(s.view)) return false;
  return WithTiles(s.view.head_dim, [&](auto dim) {
    if constexpr (dim <= kWidestTile) {
      Launch(device, kName, AttendMaskedTiles<dim>,
             {.blocks = Blocks(call, kTileQueries),
              .threads = dim3(kTileWarps * kWarp),
              .shared_bytes = kMaskedTileShared<dim>},
             s, scale);
    }
  });
}

template <typename T>
void AttendByRows(Device& device, const BidirectionalAttentionCall& call, float scale) {
  const BidirectionalView<T> s = MakeView<T>(call);
  WithLayout<T>(s.view.head_dim, IsAligned(s.view), [&]<typename Layout>(Layout) {
    Launch(device, kName, AttendMaskedRows<T, Layout>,
           {.blocks = Blocks(call, 1),
            .threads = dim3(kQueryThreads),
            .shared_bytes = QueryShared(s.view.head_dim)},
           s, scale);
  });
}

}  // namespace

void BidirectionalAttention(Device& device, const BidirectionalAttentionCall& call) {
  assert(call.qkv.rows == call.mask.rows * call.mask.cols && call.o.rows == call.qkv.rows);
  assert(call.qkv.cols == 3 * call.shape.heads * call.shape.head_dim);
  assert(call.qkv.dtype == call.o.dtype);
  if (call.qkv.rows == 0) return;
  const float scale = ScoreScale(call.shape.head_dim);
  if (AttendByTiles(device, call, scale)) return;
  if (call.qkv.dtype == DType::kBF16) {
    AttendByRows<BF16>(device, call, scale);
  } else {
    AttendByRows<float>(device, call, scale);
  }
}

}  // namespace hippodrome::cuda
