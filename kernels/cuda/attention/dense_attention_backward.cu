#include "kernels/cuda/attention/dense_attention.h"

#include <cassert>
#include <cmath>

#include "kernels/cuda/attention/dense_attention_backward.cuh"
#include "kernels/cuda/attention/rotary.cuh"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

// The rows that attention and its gradients work on, f32 [B T, 3 d] in scratch memory: q | k | v
// with q and k rotated and q scaled, and later the gradients of these.

constexpr int kGradientRowThreads = 128;

struct GradientRows {
  Rotary rotary;
  int32_t heads;
  int32_t head_dim;
  int32_t tokens;  // of each sequence
  float scale;     // 1 / sqrt(head_dim)

  __device__ int columns() const { return 3 * heads * head_dim; }
};

// y = R x or R^T x, element j of a head, R the rotation at a position.
template <typename T>
__device__ inline float Rotated(const Rotary& rotary, int position, const T* x, int j,
                                bool transposed) {
  if (j >= 2 * rotary.half) return Widen(x[j]);
  const bool lower = j < rotary.half;
  const float2 turn = Turn(position, rotary.inv_freq[lower ? j : j - rotary.half]);
  const float other = Widen(x[lower ? j + rotary.half : j - rotary.half]);
  return Widen(x[j]) * turn.x + other * (lower != transposed ? -turn.y : turn.y);
}

// rows = (scale R q | R k | v). Blocks: rows.
template <typename T>
__global__ void __launch_bounds__(kGradientRowThreads)
    LoadGradientRowsKernel(GradientRows a, const T* qkv, int64_t stride, float* rows) {
  const int position = static_cast<int>(blockIdx.x % static_cast<unsigned>(a.tokens));
  const int d = a.heads * a.head_dim;
  qkv += blockIdx.x * stride;
  rows += int64_t{blockIdx.x} * a.columns();
  for (int i = static_cast<int>(threadIdx.x); i < a.columns(); i += kGradientRowThreads) {
    const int j = i % a.head_dim;
    if (i >= 2 * d) {
      rows[i] = Widen(qkv[i]);
    } else {
      const float x = Rotated(a.rotary, position, qkv + (i - j), j, /*transposed=*/false);
      rows[i] = i < d ? x * a.scale : x;
    }
  }
}

// From the gradients of these rows to those of qkv. Blocks: rows.
__global__ void __launch_bounds__(kGradientRowThreads)
    StoreGradientRowsKernel(GradientRows a, const float* rows, float* dqkv, int64_t stride,
                            bool add) {
  const int position = static_cast<int>(blockIdx.x % static_cast<unsigned>(a.tokens));
  const int d = a.heads * a.head_dim;
  dqkv += blockIdx.x * stride;
  rows += int64_t{blockIdx.x} * a.columns();
  for (int i = static_cast<int>(threadIdx.x); i < a.columns(); i += kGradientRowThreads) {
    const int j = i % a.head_dim;
    float x = rows[i];
    if (i < 2 * d) x = Rotated(a.rotary, position, rows + (i - j), j, /*transposed=*/true);
    if (i < d) x *= a.scale;
    dqkv[i] = add ? dqkv[i] + x : x;
  }
}

GradientRows RowsOf(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  return {.rotary = {static_cast<const float*>(problem.inv_freq.data),
                     static_cast<int>(shape.rotary_dim / 2)},
          .heads = static_cast<int32_t>(shape.heads),
          .head_dim = static_cast<int32_t>(shape.head_dim),
          .tokens = static_cast<int32_t>(problem.tokens()),
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)))};
}

Grid RowBlocks(const AttentionProblem& problem) {
  return {.blocks = dim3(static_cast<unsigned>(problem.qkv.rows)),
          .threads = dim3(kGradientRowThreads)};
}

template <int kWidth>
Grid TileBlocks(const AttentionProblem& problem) {
  constexpr int64_t kRows = GradientTile<kWidth>::kRows;
  return {.blocks = dim3(static_cast<unsigned>((problem.tokens() + kRows - 1) / kRows),
                         static_cast<unsigned>(problem.shape.heads),
                         static_cast<unsigned>(problem.sequences)),
          .threads = dim3(kGradientThreads),
          .shared_bytes = kAttentionShared<kWidth>};
}

// use(std::integral_constant<int, width>()) with the narrowest tiles that hold heads.
template <typename Use>
void WithWidth(int64_t head_dim, const Use& use) {
  assert(head_dim <= 256);
  if (head_dim <= 32) return use(std::integral_constant<int, 32>());
  if (head_dim <= 64) return use(std::integral_constant<int, 64>());
  if (head_dim <= 128) return use(std::integral_constant<int, 128>());
  use(std::integral_constant<int, 256>());
}

void CheckShapes(const AttentionProblem& problem, [[maybe_unused]] const Tensor& o) {
  [[maybe_unused]] const int64_t d = problem.shape.heads * problem.shape.head_dim;
  assert(problem.sequences > 0 && problem.qkv.rows % problem.sequences == 0);
  assert(problem.qkv.cols == 3 * d && o.cols == d && o.rows == problem.qkv.rows);
  assert(problem.mask.data == nullptr || problem.mask.cols == problem.tokens());
}

// The rows of the problem, made from qkv. Scratch memory holds, in this order: terms of queries,
// the rows, and for the backward their gradients.
AttentionArguments Load(Device& device, const AttentionProblem& problem, const Tensor& d_o) {
  const int64_t d = problem.shape.heads * problem.shape.head_dim;
  const int64_t floats = problem.qkv.rows * 3 * d;
  const int64_t terms = problem.qkv.rows * problem.shape.heads;
  const bool backward = d_o.data != nullptr;
  const int64_t bytes = terms * static_cast<int64_t>(sizeof(QueryTerms)) +
                        (backward ? 2 : 1) * floats * static_cast<int64_t>(sizeof(float));
  auto* query_terms = static_cast<QueryTerms*>(
      device.Scratch(ScratchUse::kAttentionRows, static_cast<size_t>(bytes)));
  auto* rows = reinterpret_cast<float*>(query_terms + terms);
  const auto launch = [&]<typename T>(T) {
    Launch(device, "attention_rows", LoadGradientRowsKernel<T>, RowBlocks(problem), RowsOf(problem),
           static_cast<const T*>(problem.qkv.data), problem.qkv.stride, rows);
  };
  problem.qkv.dtype == DType::kBF16 ? launch(BF16()) : launch(float());
  return {.rows = rows,
          .mask = static_cast<const int32_t*>(problem.mask.data),
          .mask_stride = problem.mask.stride,
          .d_o = static_cast<const float*>(d_o.data),
          .d_o_stride = d_o.stride,
          .query_terms = query_terms,
          .drows = rows + floats,
          .tokens = static_cast<int32_t>(problem.tokens()),
          .heads = static_cast<int32_t>(problem.shape.heads),
          .head_dim = static_cast<int32_t>(problem.shape.head_dim),
          .dropout_seed = problem.dropout.seed,
          .dropout_threshold = DropoutThreshold(problem.dropout.p),
          .dropout_scale = static_cast<float>(1 / (1 - problem.dropout.p))};
}

// o may be empty.
template <typename T>
void Forward(Device& device, const AttentionProblem& problem, const AttentionArguments& arguments,
             const Tensor& o) {
  WithWidth(problem.shape.head_dim, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch(device, "attention_forward", AttentionForwardKernel<T, kWidth>,
           TileBlocks<kWidth>(problem), arguments, static_cast<T*>(o.data), o.stride);
  });
}

}  // namespace

void AttentionForward(Device& device, const AttentionProblem& problem, Tensor o) {
  if (problem.qkv.rows == 0) return;
  CheckShapes(problem, o);
  assert(o.dtype == problem.qkv.dtype);
  const AttentionArguments arguments = Load(device, problem, {});
  if (o.dtype == DType::kBF16) {
    Forward<BF16>(device, problem, arguments, o);
  } else {
    Forward<float>(device, problem, arguments, o);
  }
}

void AttentionBackward(Device& device, const AttentionProblem& problem, Tensor d_o,
                       const Gradient& dqkv) {
  if (problem.qkv.rows == 0 || dqkv.tensor.data == nullptr) return;
  CheckShapes(problem, d_o);
  assert(d_o.dtype == DType::kF32 && dqkv.tensor.dtype == DType::kF32);
  const AttentionArguments arguments = Load(device, problem, d_o);
  Forward<float>(device, problem, arguments, {});
  WithWidth(problem.shape.head_dim, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    const Grid blocks = TileBlocks<kWidth>(problem);
    Launch(device, "attention_query_gradient", QueryGradientKernel<kWidth>, blocks, arguments);
    Launch(device, "attention_key_gradient", KeyGradientKernel<kWidth>, blocks, arguments);
  });
  Launch(device, "attention_store_gradient", StoreGradientRowsKernel, RowBlocks(problem),
         RowsOf(problem), arguments.drows, static_cast<float*>(dqkv.tensor.data),
         dqkv.tensor.stride, dqkv.add);
}

}  // namespace hippodrome::cuda
