// Attention and its gradients in tiles of queries and keys. With p = exp(q k - lse) from the
// log-sum-exp of the scores of a query, g = do v and c = sum_j do_j o_j:
//   ds = p (m g - c);  dq = ds k;  dk = ds^T q;  dv = (m p)^T do
// where m is 1, or what dropout multiplies a weight by.
// A block has one tile of queries (forward, dq) or of keys (dk, dv) and goes through the others in
// order: nothing is added by two blocks.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_CUH_

#include "kernels/cuda/attention/attention_gradient_head.cuh"

namespace hippodrome::cuda {

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

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_CUH_
