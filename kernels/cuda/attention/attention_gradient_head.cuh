// Where the rows of one head of attention are, what it sees, and what dropout leaves of it.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_HEAD_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_HEAD_CUH_

#include "kernels/cuda/attention/attention_gradient_tile.cuh"
#include "kernels/dropout_bits.h"

namespace hippodrome::cuda {

// What the gradients of a query's scores depend on beside its rows: lse and c of
// attention_gradient.cuh, and the random numbers of its dropout.
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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_HEAD_CUH_
