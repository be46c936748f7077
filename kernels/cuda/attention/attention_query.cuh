// Attention of one query by a block: its threads share the keys, which are read once.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_QUERY_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_QUERY_CUH_

#include <cassert>

#include "kernels/cuda/attention/attention_view.cuh"

namespace hippodrome::cuda {

inline constexpr int kQueryWarps = 4;
inline constexpr int kQueryThreads = kQueryWarps * kWarp;
inline constexpr int kKeyBatch = 4;  // keys that a thread reads at a time

// How kLanes lanes hold a row of at most kLanes * kCount elements: kCount adjacent ones each, or
// every kLanes-th. Lanes beyond the row hold a copy of an element of it.
template <int lanes, int count, bool adjacent>
struct RowLayout {
  static constexpr int kLanes = lanes;
  static constexpr int kCount = count;
  static constexpr int kGroups = kQueryThreads / lanes;  // of a block

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int Group() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int Element(int i) {
    return adjacent ? Lane() * kCount + i : Lane() + i * kLanes;
  }
  template <typename T>
  __device__ static void Load(const T* row, int head_dim, float (&x)[kCount]) {
    if constexpr (adjacent) {
      LoadElements<kCount>(row + (Element(0) < head_dim ? Element(0) : 0), x);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = Widen(row[Element(i) < head_dim ? Element(i) : 0]);
    }
  }
};

// sum of 2^(s - max) over keys with scores s, and of their values. A lane holds kCount elements.
template <typename Layout>
struct RunningSoftmax {
  float max = -1e38f;  // finite, so that differences are never undefined
  float sum = 0;
  float values[Layout::kCount] = {};

  // Brings the sums to a maximum that is not smaller.
  __device__ void Raise(float new_max) {
    const float factor = FastExp2(max - new_max);
    max = new_max;
    sum *= factor;
#pragma unroll
    for (int i = 0; i < Layout::kCount; ++i) values[i] *= factor;
  }
};

struct Query {
  int64_t row;  // of qkv
  int64_t sequence;
  int head;
  int64_t position;
  float scale;  // of the scores, times log2(e): exponentials are powers of two
};

// The query, rotated and scaled; zero beyond head_dim.
template <typename Layout, typename T>
__device__ inline void LoadQuery(const AttentionView<T>& view, const Query& query,
                                 float (&q)[Layout::kCount]) {
  const T* row = view.Projected(query.row, 0, query.head);
#pragma unroll
  for (int i = 0; i < Layout::kCount; ++i) {
    const int j = Layout::Element(i);
    float x[1] = {0};
    if (j < view.head_dim) LoadRotated<1>(row, j, view.rotary, query.position, x);
    q[i] = x[0] * query.scale;
  }
}

// Adds kKeyBatch keys of a page to each group's sums, the first `first` tokens after the page's
// first key. Groups take turns; keys from `count` on are not there.
template <typename Layout, typename T>
__device__ inline void AddKeys(const AttentionView<T>& view, const T* keys, int first, int count,
                               const float (&q)[Layout::kCount], RunningSoftmax<Layout>& softmax) {
  float k[kKeyBatch][Layout::kCount];
  float v[kKeyBatch][Layout::kCount];
#pragma unroll
  for (int b = 0; b < kKeyBatch; ++b) {
    const int token = min(first + Layout::Group() + b * Layout::kGroups, count - 1);
    const T* key = keys + token * view.head_dim;
    Layout::Load(key, view.head_dim, k[b]);
    Layout::Load(key + view.value_offset(), view.head_dim, v[b]);
  }
  float scores[kKeyBatch];
  float max = softmax.max;
#pragma unroll
  for (int b = 0; b < kKeyBatch; ++b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Layout::kCount; ++i) sum = fmaf(q[i], k[b][i], sum);
#pragma unroll
    for (int mask = Layout::kLanes / 2; mask > 0; mask /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, mask);
    }
    scores[b] = first + Layout::Group() + b * Layout::kGroups < count ? sum : -INFINITY;
    max = fmaxf(max, scores[b]);
  }
  softmax.Raise(max);
#pragma unroll
  for (int b = 0; b < kKeyBatch; ++b) {
    const float p = FastExp2(scores[b] - max);
    softmax.sum += p;
#pragma unroll
    for (int i = 0; i < Layout::kCount; ++i) {
      softmax.values[i] = fmaf(p, v[b][i], softmax.values[i]);
    }
  }
}

// The sums of all warps, in shared memory.
struct BlockSoftmax {
  float max;
  float sum;
  const float* values;  // [kQueryWarps][head_dim]
  const float* maxima;  // [kQueryWarps]
  int head_dim;

  __device__ float Value(int j) const {
    float value = 0;
#pragma unroll
    for (int w = 0; w < kQueryWarps; ++w) {
      value = fmaf(FastExp2(maxima[w] - max), values[w * head_dim + j], value);
    }
    return value;
  }
};

// Bytes of shared memory that AttendKeys() uses.
inline size_t QueryShared(int64_t head_dim) {
  return static_cast<size_t>(kQueryWarps * (head_dim + 2)) * sizeof(float);
}

// Brings the sums of a block's groups together.
template <typename Layout>
__device__ inline BlockSoftmax MergeGroups(RunningSoftmax<Layout> softmax, int head_dim) {
#pragma unroll
  for (int mask = Layout::kLanes; mask < kWarp; mask *= 2) {
    softmax.Raise(fmaxf(softmax.max, __shfl_xor_sync(kAllLanes, softmax.max, mask)));
    softmax.sum += __shfl_xor_sync(kAllLanes, softmax.sum, mask);
#pragma unroll
    for (int i = 0; i < Layout::kCount; ++i) {
      softmax.values[i] += __shfl_xor_sync(kAllLanes, softmax.values[i], mask);
    }
  }
  float* values = reinterpret_cast<float*>(SharedMemory());
  float* maxima = values + kQueryWarps * head_dim;
  float* sums = maxima + kQueryWarps;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane < Layout::kLanes) {
#pragma unroll
    for (int i = 0; i < Layout::kCount; ++i) {
      const int j = Layout::Element(i);
      if (j < head_dim) values[warp * head_dim + j] = softmax.values[i];
    }
  }
  if (lane == 0) {
    maxima[warp] = softmax.max;
    sums[warp] = softmax.sum;
  }
  __syncthreads();
  BlockSoftmax all = {maxima[0], 0, values, maxima, head_dim};
#pragma unroll
  for (int w = 1; w < kQueryWarps; ++w) all.max = fmaxf(all.max, maxima[w]);
#pragma unroll
  for (int w = 0; w < kQueryWarps; ++w) {
    all.sum = fmaf(FastExp2(maxima[w] - all.max), sums[w], all.sum);
  }
  return all;
}

// Attends to the keys [begin, end) of the sequence's table, which are stored. All threads of the
// block call it once. REQUIRES: begin is the start of a page, begin < end.
template <typename Layout, typename T>
__device__ inline BlockSoftmax AttendKeys(const AttentionView<T>& view, const Query& query,
                                          int64_t begin, int64_t end) {
  float q[Layout::kCount];
  LoadQuery<Layout>(view, query, q);
  RunningSoftmax<Layout> softmax;
  const int32_t* pages = view.PageTable(query.sequence) + begin / view.page_tokens;
  int32_t page = *pages;
  for (; begin < end; begin += view.page_tokens) {
    const T* keys = view.Keys(page, query.head);
    if (begin + view.page_tokens < end) page = *++pages;  // early: the next keys wait for it
    const int count = static_cast<int>(min(static_cast<int64_t>(view.page_tokens), end - begin));
    for (int first = 0; first < count; first += kKeyBatch * Layout::kGroups) {
      AddKeys<Layout>(view, keys, first, count, q, softmax);
    }
  }
  return MergeGroups(softmax, view.head_dim);
}

// Calls launch(RowLayout) with the layout for rows of head_dim elements of type T, which start at
// multiples of 16 bytes if `aligned`.
// REQUIRES: head_dim <= 256.
template <typename T, typename Launcher>
void WithLayout(int64_t head_dim, bool aligned, Launcher launch) {
  assert(head_dim <= 8 * kWarp);
  constexpr int kCount = kVector<T>;
  if (!aligned || head_dim % kCount != 0 || head_dim > 128) {
    launch(RowLayout<kWarp, 8, false>());
  } else if (head_dim > 64) {
    launch(RowLayout<128 / kCount, kCount, true>());
  } else {
    launch(RowLayout<64 / kCount, kCount, true>());
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_QUERY_CUH_
