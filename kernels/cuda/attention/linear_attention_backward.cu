// The gradients of linear attention. What is called q and k here are features of q and k, and
// their gradients, until the end.
#include <cassert>

#include "kernels/cuda/attention/linear_attention.h"
#include "kernels/cuda/attention/outer_scan.cuh"
#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

// f32 in scratch memory: rows [B T, d], heads adjacent.
struct GradientWork {
  float *q, *k, *v, *dn;  // dn: d_o, and after NormalizeKernel dN
  float *dq, *dk, *dv;
  float* dd;      // [B T, heads]
  float* matrix;  // [B, heads, n, n]
  float* z;       // [B, heads, n]
  int32_t heads;
  int32_t head_dim;
  int64_t tokens;  // of each sequence

  // Of token t of the block's sequence, column 0 of the block's head.
  __device__ int64_t At(int64_t t) const {
    return (blockIdx.y * tokens + t) * heads * head_dim + int64_t{blockIdx.x} * head_dim;
  }
  __device__ int64_t Head() const { return int64_t{blockIdx.y} * heads + blockIdx.x; }
};

template <typename T>
struct LoadRows {
  GradientWork work;
  Elements<const T> qkv;
  Elements<const float> d_o;
  int64_t d;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int64_t at = row * d + column;
    work.q[at] = LinearAttentionFeature(Widen(qkv.At(row, column)));
    work.k[at] = LinearAttentionFeature(Widen(qkv.At(row, d + column)));
    work.v[at] = Widen(qkv.At(row, 2 * d + column));
    work.dn[at] = d_o.At(row, column);
  }
};

struct StoreRows {
  GradientWork work;
  Elements<float> dqkv;
  bool add;
  int64_t d;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int64_t at = row * d + column;
    Put(dqkv.At(row, column), work.dq[at] * fminf(work.q[at], 1.0f));
    Put(dqkv.At(row, d + column), work.dk[at] * fminf(work.k[at], 1.0f));
    Put(dqkv.At(row, 2 * d + column), work.dv[at]);
  }
  __device__ void Put(float& to, float x) const { to = add ? to + x : x; }
};

// What a scan reads and writes, all of GradientWork's rows.
struct ScanArguments {
  const float *x, *y, *w;
  float* out;
  bool backwards;
};

// Grid: (heads, sequences, groups of kOuterThreads columns). From an empty matrix.
__global__ void __launch_bounds__(kOuterThreads)
    OuterScanKernel(const GradientWork work, const ScanArguments a) {
  __shared__ OuterTile<kOuterTokens> tile;
  const int n = work.head_dim;
  const int column = static_cast<int>(blockIdx.z * kOuterThreads + threadIdx.x);
  float* matrix = column < n ? work.matrix + work.Head() * n * n + column : nullptr;
  if (matrix != nullptr) {
    for (int row = 0; row < n; ++row) matrix[int64_t{row} * n] = 0.0f;
  }
  for (int64_t t = 0; t < work.tokens; t += kOuterTokens) {
    const int steps = static_cast<int>(min(int64_t{kOuterTokens}, work.tokens - t));
    const auto at = [&](int i) { return work.At(a.backwards ? work.tokens - 1 - (t + i) : t + i); };
    float y[kOuterTokens];
#pragma unroll
    for (int i = 0; i < kOuterTokens; ++i) {
      y[i] = matrix != nullptr && i < steps ? a.y[at(i) + column] : 0.0f;
    }
    float out[kOuterTokens];
    ScanOuter(
        tile, n, [&](int i, int row) { return i < steps ? a.x[at(i) + row] : 0.0f; },
        [&](int i, int row) { return i < steps ? a.w[at(i) + row] : 0.0f; }, y, matrix, n, out);
    if (matrix == nullptr) continue;
#pragma unroll
    for (int i = 0; i < kOuterTokens; ++i) {
      if (i < steps) a.out[at(i) + column] = out[i];
    }
  }
}

// dN = do / D, dD = -(do . N) / D^2 with do . N = q . S do, and dq = S dN + z dD. Before, dq is S
// do. Grid: (heads, sequences).
__global__ void __launch_bounds__(kOuterThreads) NormalizeKernel(const GradientWork work) {
  __shared__ float partial[kOuterWarps][2];
  const int n = work.head_dim;
  float* z = work.z + work.Head() * n;
  for (int r = static_cast<int>(threadIdx.x); r < n; r += kOuterThreads) z[r] = 0.0f;
  for (int64_t t = 0; t < work.tokens; ++t) {
    const int64_t at = work.At(t);
    float sums[2] = {};  // the denominator, and do . N
    for (int r = static_cast<int>(threadIdx.x); r < n; r += kOuterThreads) {
      z[r] += work.k[at + r];
      sums[0] = fmaf(work.q[at + r], z[r], sums[0]);
      sums[1] = fmaf(work.q[at + r], work.dq[at + r], sums[1]);
    }
    SumOverBlock(sums, partial);
    const float scale = 1.0f / (sums[0] + static_cast<float>(kLinearAttentionEpsilon));
    const float dd = -sums[1] * scale * scale;
    for (int r = static_cast<int>(threadIdx.x); r < n; r += kOuterThreads) {
      work.dq[at + r] = fmaf(z[r], dd, work.dq[at + r] * scale);
      work.dn[at + r] *= scale;
    }
    if (threadIdx.x == 0) work.dd[at / n] = dd;
  }
}

// dk = G v + g. Before, dk is G v. Grid: (heads, sequences).
__global__ void __launch_bounds__(kOuterThreads) AddNormalizerKernel(const GradientWork work) {
  for (int r = static_cast<int>(threadIdx.x); r < work.head_dim; r += kOuterThreads) {
    float g = 0.0f;
    for (int64_t t = work.tokens - 1; t >= 0; --t) {
      const int64_t at = work.At(t);
      g = fmaf(work.q[at + r], work.dd[at / work.head_dim], g);
      work.dk[at + r] += g;
    }
  }
}

GradientWork NewWork(Device& device, const LinearAttentionShape& shape, int64_t rows,
                     int64_t sequences) {
  const int64_t d = shape.heads * shape.head_dim;
  const int64_t states = sequences * d;
  const int64_t floats = 7 * rows * d + rows * shape.heads + states * (shape.head_dim + 1);
  auto* next = static_cast<float*>(
      device.Scratch(ScratchUse::kLinearAttention, static_cast<size_t>(floats) * sizeof(float)));
  GradientWork work = {};
  for (float** part : {&work.q, &work.k, &work.v, &work.dn, &work.dq, &work.dk, &work.dv}) {
    *part = next;
    next += rows * d;
  }
  work.dd = next;
  work.matrix = work.dd + rows * shape.heads;
  work.z = work.matrix + states * shape.head_dim;
  work.heads = static_cast<int32_t>(shape.heads);
  work.head_dim = static_cast<int32_t>(shape.head_dim);
  work.tokens = rows / sequences;
  return work;
}

template <typename T>
void Load(Device& device, const GradientWork& work, const Tensor& qkv, const Tensor& d_o) {
  ForEachElement(
      device, "linear_attention_rows", {qkv.rows, d_o.cols},
      LoadRows<T>{work, ElementsOf<const T>(qkv), ElementsOf<const float>(d_o), d_o.cols});
}

}  // namespace

void CausalLinearAttentionBackward(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                                   int64_t sequences, Tensor d_o, Gradient dqkv) {
  if (qkv.rows == 0 || dqkv.tensor.data == nullptr) return;
  assert(sequences > 0 && qkv.rows % sequences == 0 && d_o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * d_o.cols == qkv.cols);
  assert(d_o.dtype == DType::kF32 && dqkv.tensor.dtype == DType::kF32);
  const GradientWork work = NewWork(device, shape, qkv.rows, sequences);
  const auto load = qkv.dtype == DType::kBF16 ? Load<BF16> : Load<float>;
  load(device, work, qkv, d_o);
  const Grid heads = {
      .blocks = dim3(static_cast<unsigned>(shape.heads), static_cast<unsigned>(sequences)),
      .threads = dim3(kOuterThreads)};
  Grid columns = heads;
  columns.blocks.z = static_cast<unsigned>((shape.head_dim + kOuterThreads - 1) / kOuterThreads);
  const auto scan = [&](const ScanArguments& arguments) {
    Launch(device, "linear_attention_scan", OuterScanKernel, columns, work, arguments);
  };
  scan({work.v, work.k, work.dn, work.dq, false});  // S do
  Launch(device, "linear_attention_normalize", NormalizeKernel, heads, work);
  scan({work.q, work.dn, work.k, work.dv, true});  // dv = G^T k
  scan({work.dn, work.q, work.v, work.dk, true});  // G v
  Launch(device, "linear_attention_normalizer", AddNormalizerKernel, heads, work);
  ForEachElement(device, "linear_attention_gradient", {qkv.rows, d_o.cols},
                 StoreRows{work, ElementsOf<float>(dqkv.tensor), dqkv.add, d_o.cols});
}

}  // namespace hippodrome::cuda
