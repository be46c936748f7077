// What the kernels of attention are given: matrices and pages as device code sees them.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_CUH_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/rotary.cuh"

namespace hippodrome::cuda {

// No position is as large: it sees all. A sum with a block does not overflow.
inline constexpr int kNoWindow = INT32_MAX - 1024;

// Arguments of a kernel, by value. T: float or BF16, of activations and pages alike.
template <typename T>
struct AttentionView {
  const T* qkv;  // [rows, 3 d]
  int64_t qkv_stride;
  T* o;  // [rows, d]
  int64_t o_stride;
  T* pages;                    // see PagedRows
  const int32_t* page_tables;  // of a sequence from the page of the first key that is seen on
  int64_t table_stride;
  Rotary rotary;
  int heads;
  int head_dim;
  int page_tokens;
  int window;  // AttentionShape::window, or kNoWindow

  // AttentionShape::FirstSeen().
  __device__ int FirstSeen(int position) const {
    constexpr int kBlock = kWindowBlock;
    return max(0, position + 1 - window) / kBlock * kBlock;
  }
  // Part 0 (q), 1 (k) or 2 (v) of one head.
  __device__ const T* Projected(int64_t row, int part, int head) const {
    return qkv + row * qkv_stride + static_cast<int64_t>(part * heads + head) * head_dim;
  }
  __device__ T* Output(int64_t row, int head) const {
    return o + row * o_stride + static_cast<int64_t>(head) * head_dim;
  }
  __device__ const int32_t* PageTable(int64_t sequence) const {
    return page_tables + sequence * table_stride;
  }
  // The keys of a page, [page_tokens, head_dim]; their values follow them.
  __device__ T* Keys(int32_t page, int head) const {
    return pages + (static_cast<int64_t>(page) * heads + head) * 2 * value_offset();
  }
  __device__ int64_t value_offset() const { return static_cast<int64_t>(page_tokens) * head_dim; }
  // The key of one position of a sequence, so many after the first of its table.
  __device__ T* Key(int64_t sequence, int64_t after, int head) const {
    const int32_t page = PageTable(sequence)[after / page_tokens];
    return Keys(page, head) + after % page_tokens * head_dim;
  }
};

// Call: AttentionSequenceCall or AttentionStepCall.
template <typename T, typename Call>
AttentionView<T> MakeView(const Call& call) {
  return {.qkv = static_cast<const T*>(call.qkv.data),
          .qkv_stride = call.qkv.stride,
          .o = static_cast<T*>(call.o.data),
          .o_stride = call.o.stride,
          .pages = static_cast<T*>(call.pages.data()),
          .page_tables = static_cast<const int32_t*>(call.page_tables.data),
          .table_stride = call.page_tables.stride,
          .rotary = {static_cast<const float*>(call.inv_freq.data),
                     static_cast<int>(call.shape.rotary_dim / 2)},
          .heads = static_cast<int>(call.shape.heads),
          .head_dim = static_cast<int>(call.shape.head_dim),
          .page_tokens = static_cast<int>(call.pages.page_tokens()),
          .window = call.shape.window == 0
                        ? kNoWindow
                        : static_cast<int>(std::min<int64_t>(call.shape.window, kNoWindow))};
}

// Whether rows of heads can be read in units of 16 bytes.
template <typename T>
bool IsAligned(const AttentionView<T>& view) {
  constexpr int kBytes = 16;
  return view.head_dim % kVector<T> == 0 && view.rotary.half % kVector<T> == 0 &&
         view.qkv_stride % kVector<T> == 0 && view.o_stride % kVector<T> == 0 &&
         reinterpret_cast<uintptr_t>(view.qkv) % kBytes == 0 &&
         reinterpret_cast<uintptr_t>(view.o) % kBytes == 0;
}

// Of the scores q k: 1 / sqrt(head_dim), and log2(e), so that exponentials are powers of two.
inline float ScoreScale(int64_t head_dim) {
  return static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(head_dim)));
}

// Rotates and stores elements [j, j + kCount) of the key of `row` and stores those of its value.
template <int kCount, typename T>
__device__ inline void StoreKeyValue(const AttentionView<T>& view, int64_t row, int head, int j,
                                     int64_t position, T* key) {
  float x[kCount];
  LoadRotated<kCount>(view.Projected(row, 1, head), j, view.rotary, position, x);
  StoreElements<kCount>(x, key + j);
  LoadElements<kCount>(view.Projected(row, 2, head) + j, x);
  StoreElements<kCount>(x, key + view.value_offset() + j);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_CUH_
