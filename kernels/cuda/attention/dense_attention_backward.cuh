// Attention and its gradients in tiles of queries and keys. With p = exp(q k - lse) from the
// log-sum-exp of the scores of a query, g = do v and c = sum_j do_j o_j:
//   ds = p (m g - c);  dq = ds k;  dk = ds^T q;  dv = (m p)^T do
// where m is 1, or what dropout multiplies a weight by.
// A block has one tile of queries (forward, dq) or of keys (dk, dv) and goes through the others in
// order: nothing is added by two blocks.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_BACKWARD_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_BACKWARD_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/dropout_bits.h"

namespace hippodrome::cuda {

// Products of small matrices in shared memory, in f32: what the kernels
// are made of. A block has 16 x 16 threads; thread (y, x) has rows y + 16 i and columns x + 16 j of
// every result.

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

// Where the rows of one head of attention are, what it sees, and what dropout leaves of it.

// What the gradients of a query's scores depend on beside its rows: lse and c as above, and the
// random numbers of its dropout.
struct alignas(16) QueryTerms {
  float lse;
  float c;
  DropoutRow dropout;
};

struct AttentionArguments {
  const float* rows;    // q | k | v, [B T, 3 d]
  const int32_t* mask;  // [B, T], or null: causal
  int64_t mask_stride;
  const float* d_o;  // [B T, d], or null
  int64_t d_o_stride;
  QueryTerms* query_terms;  // [B, heads, T]
  float* drows;             // [B T, 3 d]
  int32_t tokens;
  int32_t heads;
  int32_t head_dim;
  uint64_t dropout_seed;
  uint32_t dropout_threshold;  // 0: none
  float dropout_scale;
};

// The tiles of one head (blockIdx.y) of one sequence (blockIdx.z).
template <int kWidth>
struct AttentionHead {
  using Tile = GradientTile<kWidth>;

  __device__ explicit AttentionHead(const AttentionArguments& arguments)
      : a(arguments),
        begin(int64_t{blockIdx.z} * a.tokens),
        terms(a.query_terms + (int64_t{blockIdx.z} * a.heads + blockIdx.y) * a.tokens) {}

  __device__ int64_t stride() const { return 3 * int64_t{a.heads} * a.head_dim; }
  __device__ int Count(int first) const { return min(Tile::kRows, a.tokens - first); }
  // Element (token, 0) of part 0 (q), 1 (k) or 2 (v).
  __device__ int64_t Place(int token, int part) const {
    return (begin + token) * stride() +
           (int64_t{part} * a.heads + static_cast<int>(blockIdx.y)) * a.head_dim;
  }
  __device__ void Load(int first, int part, float* tile) const {
    LoadTile<kWidth>(a.rows + Place(first, part), stride(), Count(first), a.head_dim, tile);
  }
  __device__ int64_t OutputPlace(int token, int64_t output_stride) const {
    return (begin + token) * output_stride + int64_t{blockIdx.y} * a.head_dim;
  }
  __device__ void LoadOutputGradient(int first, float* tile) const {
    LoadTile<kWidth>(a.d_o + OutputPlace(first, a.d_o_stride), a.d_o_stride, Count(first),
                     a.head_dim, tile);
  }
  // The first query that sees a key, beyond all of them if none does.
  __device__ int FirstQuery(int key) const {
    if (key >= a.tokens) return INT32_MAX;
    if (a.mask == nullptr) return key;
    return a.mask[blockIdx.z * a.mask_stride + key] != 0 ? 0 : INT32_MAX;
  }
  // The first key behind those that queries before `end` see, and the first query that sees keys
  // from `first` on.
  __device__ int KeyEnd(int end) const { return a.mask == nullptr ? min(end, a.tokens) : a.tokens; }
  __device__ int QueryBegin(int first) const { return a.mask == nullptr ? first : 0; }

  // What dropout multiplies the weights of a query by.
  __device__ DropoutRow DropoutOf(int query) const {
    return DropoutRowOf(a.dropout_seed,
                        (int64_t{blockIdx.z} * a.heads + blockIdx.y) * a.tokens + query);
  }
  __device__ float Factor(DropoutRow row, int key) const {
    const uint32_t bits = DropoutBits(row, static_cast<uint32_t>(key));
    return bits < a.dropout_threshold ? 0.0f : a.dropout_scale;
  }

  const AttentionArguments& a;
  int64_t begin;      // row of the first token
  QueryTerms* terms;  // of the head's queries
};

// Shared memory in floats: four tiles of rows, two of scores.
template <int kWidth>
constexpr size_t kAttentionShared =
    (4 * GradientTile<kWidth>::kFloats + 2 * GradientTile<kWidth>::kScoreFloats) * sizeof(float);

// The softmax of the queries of a thread, key tile by key tile.
template <int kWidth>
struct TileSoftmax {
  using Tile = GradientTile<kWidth>;

  __device__ TileSoftmax() {
#pragma unroll
    for (int i = 0; i < Tile::kPerThread; ++i) {
      max[i] = -INFINITY;
      sum[i] = 0;
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) values[i][j] = 0;
    }
  }

  // Takes in scores, which become weights; -infinity is not seen.
  __device__ void Take(typename Tile::Scores& scores) {
#pragma unroll
    for (int i = 0; i < Tile::kPerThread; ++i) {
      float highest = max[i];
#pragma unroll
      for (int j = 0; j < Tile::kPerThread; ++j) highest = fmaxf(highest, scores[i][j]);
      highest = RowMax(highest);
      const float shift = highest == -INFINITY ? 0.0f : highest;
      const float factor = expf(max[i] - shift);
      float own = 0;
#pragma unroll
      for (int j = 0; j < Tile::kPerThread; ++j) {
        scores[i][j] = expf(scores[i][j] - shift);
        own += scores[i][j];
      }
      sum[i] = fmaf(sum[i], factor, RowSum(own));
      max[i] = highest;
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) values[i][j] *= factor;
    }
  }

  float max[Tile::kPerThread];
  float sum[Tile::kPerThread];
  typename Tile::Sums values;
};

// o, where it is not null, and the terms of queries, where there is do. Blocks: (tiles of queries,
// heads, sequences).
template <typename T, int kWidth>
__global__ void __launch_bounds__(kGradientThreads, kWidth <= 64 ? 2 : 1)
    AttentionForwardKernel(AttentionArguments a, T* o, int64_t o_stride) {
  using Tile = GradientTile<kWidth>;
  const AttentionHead<kWidth> head(a);
  auto* q = reinterpret_cast<float*>(SharedMemory());
  float* k = q + Tile::kFloats;
  float* v = k + Tile::kFloats;
  float* weights = v + Tile::kFloats;
  const int first = static_cast<int>(blockIdx.x) * Tile::kRows;
  head.Load(first, 0, q);
  TileSoftmax<kWidth> softmax;
  const int end = head.KeyEnd(first + Tile::kRows);
  for (int key = 0; key < end; key += Tile::kRows) {
    __syncthreads();
    head.Load(key, 1, k);
    head.Load(key, 2, v);
    __syncthreads();
    typename Tile::Scores scores;
    MultiplyTiles<kWidth>(q, k, scores);
#pragma unroll
    for (int j = 0; j < Tile::kPerThread; ++j) {
      const int seen_from = head.FirstQuery(key + TileX() + j * kTileSide);
#pragma unroll
      for (int i = 0; i < Tile::kPerThread; ++i) {
        if (first + TileY() + i * kTileSide < seen_from) scores[i][j] = -INFINITY;
      }
    }
    softmax.Take(scores);
#pragma unroll
    for (int i = 0; i < Tile::kPerThread; ++i) {
      const DropoutRow row = head.DropoutOf(first + TileY() + i * kTileSide);
#pragma unroll
      for (int j = 0; j < Tile::kPerThread; ++j) {
        scores[i][j] *= head.Factor(row, key + TileX() + j * kTileSide);
      }
    }
    StoreScores<kWidth>(scores, false, weights);
    __syncthreads();
    AddProduct<kWidth>(weights, v, softmax.values);
  }
  // Queries without keys: o is zero, and so is p.
#pragma unroll
  for (int i = 0; i < Tile::kPerThread; ++i) {
    const float factor = softmax.sum[i] > 0 ? 1 / softmax.sum[i] : 0.0f;
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) softmax.values[i][j] *= factor;
  }
  if (o != nullptr) {
    ForEachSum<kWidth>(softmax.values, head.Count(first), a.head_dim,
                       [&](int row, int column, float value) {
                         o[head.OutputPlace(first + row, o_stride) + column] = FromFloat<T>(value);
                       });
  }
  if (a.d_o == nullptr) return;
#pragma unroll
  for (int i = 0; i < Tile::kPerThread; ++i) {
    const int query = first + TileY() + i * kTileSide;
    float c = 0;
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      const int column = TileX() + j * kTileSide;
      if (query < a.tokens && column < a.head_dim) {
        c = fmaf(a.d_o[head.OutputPlace(query, a.d_o_stride) + column], softmax.values[i][j], c);
      }
    }
    c = RowSum(c);
    const float sum = softmax.sum[i];
    const float lse = sum > 0 ? softmax.max[i] + logf(sum) : INFINITY;
    if (TileX() == 0 && query < a.tokens) head.terms[query] = {lse, c, head.DropoutOf(query)};
  }
}

// m p and ds of a tile of queries and a tile of keys, whose rows are in shared memory.
template <int kWidth>
struct TileGradient {
  using Tile = GradientTile<kWidth>;

  __device__ void Compute(const AttentionHead<kWidth>& head, int query, int key, const float* q,
                          const float* k, const float* v, const float* d_o) {
    MultiplyTiles<kWidth>(q, k, p);
    MultiplyTiles<kWidth>(d_o, v, ds);
    // A bit for each score: registers are short.
    uint32_t seen = 0;
#pragma unroll
    for (int j = 0; j < Tile::kPerThread; ++j) {
      const int seen_from = head.FirstQuery(key + TileX() + j * kTileSide);
#pragma unroll
      for (int i = 0; i < Tile::kPerThread; ++i) {
        if (query + TileY() + i * kTileSide >= seen_from) seen |= 1u << (i * Tile::kPerThread + j);
      }
    }
#pragma unroll
    for (int i = 0; i < Tile::kPerThread; ++i) {
      const int row = query + TileY() + i * kTileSide;
      const QueryTerms terms = row < head.a.tokens
                                   ? head.terms[row]
                                   : QueryTerms{.lse = INFINITY, .c = 0, .dropout = {}};
#pragma unroll
      for (int j = 0; j < Tile::kPerThread; ++j) {
        const bool visible = (seen >> (i * Tile::kPerThread + j) & 1u) != 0;
        const float weight = visible ? expf(p[i][j] - terms.lse) : 0.0f;
        const float factor = head.Factor(terms.dropout, key + TileX() + j * kTileSide);
        ds[i][j] = weight * (factor * ds[i][j] - terms.c);
        p[i][j] = factor * weight;
      }
    }
  }

  typename Tile::Scores p;
  typename Tile::Scores ds;
};

// Blocks: (tiles of queries, heads, sequences).
template <int kWidth>
__global__ void __launch_bounds__(kGradientThreads) QueryGradientKernel(AttentionArguments a) {
  using Tile = GradientTile<kWidth>;
  const AttentionHead<kWidth> head(a);
  auto* q = reinterpret_cast<float*>(SharedMemory());
  float* d_o = q + Tile::kFloats;
  float* k = d_o + Tile::kFloats;
  float* v = k + Tile::kFloats;
  float* ds = v + Tile::kFloats;
  const int first = static_cast<int>(blockIdx.x) * Tile::kRows;
  head.Load(first, 0, q);
  head.LoadOutputGradient(first, d_o);
  typename Tile::Sums dq = {};
  const int end = head.KeyEnd(first + Tile::kRows);
  for (int key = 0; key < end; key += Tile::kRows) {
    __syncthreads();
    head.Load(key, 1, k);
    head.Load(key, 2, v);
    __syncthreads();
    TileGradient<kWidth> gradient;
    gradient.Compute(head, first, key, q, k, v, d_o);
    StoreScores<kWidth>(gradient.ds, false, ds);
    __syncthreads();
    AddProduct<kWidth>(ds, k, dq);
  }
  ForEachSum<kWidth>(dq, head.Count(first), a.head_dim, [&](int row, int column, float value) {
    a.drows[head.Place(first + row, 0) + column] = value;
  });
}

// Blocks: (tiles of keys, heads, sequences).
template <int kWidth>
__global__ void __launch_bounds__(kGradientThreads) KeyGradientKernel(AttentionArguments a) {
  using Tile = GradientTile<kWidth>;
  const AttentionHead<kWidth> head(a);
  auto* k = reinterpret_cast<float*>(SharedMemory());
  float* v = k + Tile::kFloats;
  float* q = v + Tile::kFloats;
  float* d_o = q + Tile::kFloats;
  float* p = d_o + Tile::kFloats;
  float* ds = p + Tile::kScoreFloats;
  const int first = static_cast<int>(blockIdx.x) * Tile::kRows;
  head.Load(first, 1, k);
  head.Load(first, 2, v);
  typename Tile::Sums dk = {};
  typename Tile::Sums dv = {};
  for (int query = head.QueryBegin(first); query < a.tokens; query += Tile::kRows) {
    __syncthreads();
    head.Load(query, 0, q);
    head.LoadOutputGradient(query, d_o);
    __syncthreads();
    TileGradient<kWidth> gradient;
    gradient.Compute(head, query, first, q, k, v, d_o);
    StoreScores<kWidth>(gradient.p, true, p);
    StoreScores<kWidth>(gradient.ds, true, ds);
    __syncthreads();
    AddProduct<kWidth>(p, d_o, dv);
    AddProduct<kWidth>(ds, q, dk);
  }
  const int count = head.Count(first);
  ForEachSum<kWidth>(dk, count, a.head_dim, [&](int row, int column, float value) {
    a.drows[head.Place(first + row, 1) + column] = value;
  });
  ForEachSum<kWidth>(dv, count, a.head_dim, [&](int row, int column, float value) {
    a.drows[head.Place(first + row, 2) + column] = value;
  });
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_BACKWARD_CUH_
