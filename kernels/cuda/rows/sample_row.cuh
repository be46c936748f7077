// Searches in the descending order of one row of logits, in which equal logits follow each other by
// id, by all threads of a block together.
//
// Nothing is sorted: a search bisects the keys of logits, and sums a measure of tokens (their
// number or their mass) between two keys. Measures are integers, whose sums are exact in any order.
// A NaN lies between no two keys and so belongs to no sum.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_ROW_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_ROW_CUH_

#include "kernels/cuda/base/block_reduce.cuh"

namespace hippodrome::cuda {

inline constexpr int32_t kNearTokens = 4096;

// What the threads of a block share, at the beginning of its dynamic memory.
struct SampleMemory {
  uint64_t partials[kWarp];
  int32_t near_count;
  int32_t near[kNearTokens];  // ids of the tokens near the place that a search is after
};

__device__ inline SampleMemory& SharedSampleMemory() {
  return *reinterpret_cast<SampleMemory*>(SharedMemory());
}

// Integers in the order of the floats that are not NaN. Both zeros have the same.
inline constexpr uint32_t kZeroKey = 0x80000000u;
__device__ inline uint32_t KeyOf(float x) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  return bits == magnitude ? kZeroKey + magnitude : kZeroKey - magnitude;
}
__device__ inline float LogitOf(uint32_t key) {
  return __uint_as_float(key < kZeroKey ? 0x80000000u | (kZeroKey - key) : key - kZeroKey);
}

// Tokens of a row: all, or only those near a place.
struct Tokens {
  const float* logits;  // of the row, in shared or in device memory
  int32_t count;
  const int32_t* near;  // null: all
};

// The sum of measure(id, logit) over `tokens`.
template <class Measure>
__device__ uint64_t SumOver(const Tokens& tokens, Measure measure) {
  uint64_t sum = 0;
#pragma unroll 4
  for (auto i = static_cast<int32_t>(threadIdx.x); i < tokens.count;
       i += static_cast<int32_t>(blockDim.x)) {
    const int32_t id = tokens.near == nullptr ? i : tokens.near[i];
    sum += measure(id, tokens.logits[id]);
  }
  return BlockReduce(sum, Add(), SharedSampleMemory().partials);
}

// The sum of measure(logit) over those with keys in [first, last].
template <class Measure>
__device__ uint64_t SumBetween(const Tokens& tokens, uint32_t first, uint32_t last,
                               Measure measure) {
  const float floor = LogitOf(first);
  const float ceiling = LogitOf(last);
  return SumOver(tokens, [&](int32_t, float x) -> uint64_t {
    return x >= floor && x <= ceiling ? measure(x) : 0;
  });
}

// Those of `all` with keys in [first, last], or `all` again when they are too many.
__device__ inline Tokens Narrow(const Tokens& all, uint32_t first, uint32_t last) {
  SampleMemory& memory = SharedSampleMemory();
  if (threadIdx.x == 0) memory.near_count = 0;
  __syncthreads();
  const float floor = LogitOf(first);
  const float ceiling = LogitOf(last);
  for (auto id = static_cast<int32_t>(threadIdx.x); id < all.count;
       id += static_cast<int32_t>(blockDim.x)) {
    if (!(all.logits[id] >= floor && all.logits[id] <= ceiling)) continue;
    const int32_t i = atomicAdd(&memory.near_count, 1);
    if (i < kNearTokens) memory.near[i] = id;
  }
  __syncthreads();
  if (memory.near_count > kNearTokens) return all;
  return {all.logits, memory.near_count, memory.near};
}

// All tokens, and where to search for places among them.
struct SearchedRow {
  Tokens all;
  uint32_t lowest;   // the key of minus infinity
  uint32_t highest;  // the key of the largest logit
  uint32_t hint;     // a key in [lowest, highest] that a few of the tokens reach
};

// A place in the descending order. `near`, which holds all tokens with its key, is valid until the
// next search.
struct Place {
  uint32_t key;
  uint64_t rank;  // tokens with this key that come before
  uint64_t sum;   // of the measure up to and with the place
  Tokens near;
};

// The first place where the sum of measure(logit) reaches `target`, at least 1. Beyond the end of
// the row it is the place of a token with logit minus infinity, one that may not exist.
template <class Measure>
__device__ Place FindPlace(const SearchedRow& row, Measure measure, uint64_t target) {
  Tokens tokens = row.all;
  uint32_t low = row.lowest;        // the tokens from here up reach the target
  uint32_t high = row.highest + 1;  // and those from here up do not:
  uint64_t above = 0;               // this is their sum
  for (int step = 0; high - low > 1; ++step) {
    if (step % 8 == 1 && tokens.near == nullptr) tokens = Narrow(row.all, low, high - 1);
    const uint32_t middle = step == 0 ? row.hint : low + (high - low) / 2;
    const uint64_t sum = above + SumBetween(tokens, middle, high - 1, measure);
    if (sum >= target) {
      low = middle;
    } else {
      high = middle;
      above = sum;
    }
  }
  const uint64_t each = measure(LogitOf(low));
  const uint64_t rank = (target - above - 1) / each;
  return {low, rank, above + (rank + 1) * each, tokens};
}

// The token at a place. REQUIRES: it exists.
__device__ inline int32_t TokenAt(const SearchedRow& row, const Place& place) {
  const float logit = LogitOf(place.key);
  int32_t low = 0;
  int32_t high = row.all.count - 1;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const uint64_t count = SumOver(place.near, [&](int32_t id, float x) -> uint64_t {
      return x == logit && id <= middle ? 1 : 0;
    });
    if (count > place.rank) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_ROW_CUH_
