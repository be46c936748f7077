#include "kernels/cuda/rows/layer_norm.h"

#include <algorithm>

#include "kernels/cuda/base/column_sums.cuh"
#include "kernels/cuda/base/elements.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_norm.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

// LayerNorm: a block normalises rows that it holds in registers, one after the other, so that gamma
// and beta stay in its multiprocessor's cache, and the next row comes while one is reduced.

constexpr int kNormThreads = 1024;  // of a multiprocessor: with twice the values, 64 registers each
[[maybe_unused]] constexpr int kMaxNormWidth = kNormThreads * kNormValues;

template <typename T>
struct LayerNormArguments {
  NormRows<T> rows;
  int count;
  ReadAhead ahead;
};

// A block has every gridDim.x-th row. With kWidth 4, d is a multiple of 4 and all rows are aligned
// for vectors of 4 elements; with kWidth 1 a block has one row, whose addresses need the registers
// of the next one.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kNormThreads) LayerNormKernel(LayerNormArguments<T> a) {
  __shared__ float partial[2][kWarp];
  using Norm = RowNorm<T, kWidth>;
  const Norm norm(a.rows, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  typename Norm::Values v = {};
  BeginDependent();
  norm.Load(blockIdx.x, v);
  norm.PrefetchParameters();
  PrefetchShare(a.ahead);
  const auto store = [&](const typename Norm::Values& values, int64_t row) {
    norm.Store(values, norm.Statistics(values, partial[0], partial[1]), row);
  };
  if constexpr (kWidth > 1) {
    const int blocks = static_cast<int>(gridDim.x);
    int row = static_cast<int>(blockIdx.x);
    for (; row + blocks < a.count; row += blocks) {
      typename Norm::Values next = {};
      norm.Load(row + blocks, next);
      store(v, row);
#pragma unroll
      for (int j = 0; j < Norm::kGroups; ++j) v[j] = next[j];
    }
    store(v, row);
  } else {
    store(v, blockIdx.x);
  }
}

// LayerNormBackward, with h = (x - mean) scale, scale = 1 / sqrt(var + epsilon):
//   g = dy gamma;  dx = scale (g - mean(g) - h mean(g h))

constexpr int kNormBackwardThreads = 256;

// One block per row, of whole warps.
__global__ void __launch_bounds__(kNormBackwardThreads)
    NormStatisticsKernel(Elements<const float> x, int d, float epsilon,
                         NormStatistics* statistics) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  const int threads = static_cast<int>(blockDim.x);
  const float count = static_cast<float>(d);
  float sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += threads) sum += x.At(row, c);
  const float mean = BlockSum(sum, partial[0]) / count;
  float squares = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += threads) {
    const float value = x.At(row, c) - mean;
    squares = fmaf(value, value, squares);
  }
  const float scale = 1.0f / sqrtf(BlockSum(squares, partial[1]) / count + epsilon);
  if (threadIdx.x == 0) statistics[row] = {mean, scale};
}

struct NormBackwardArguments {
  Elements<const float> x;
  const float* gamma;
  const NormStatistics* statistics;
  Elements<const float> dy;
  int d;
  Elements<float> dx;  // may be dy
  bool add;
};

// One block per row, of whole warps.
__global__ void __launch_bounds__(kNormBackwardThreads)
    NormBackwardKernel(NormBackwardArguments a) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  const int threads = static_cast<int>(blockDim.x);
  const NormStatistics s = a.statistics[row];
  const auto normalised = [&](int c) { return (a.x.At(row, c) - s.mean) * s.scale; };
  float sum = 0;
  float dot = 0;
  for (int c = static_cast<int>(threadIdx.x); c < a.d; c += threads) {
    const float g = a.dy.At(row, c) * a.gamma[c];
    sum += g;
    dot = fmaf(g, normalised(c), dot);
  }
  const float count = static_cast<float>(a.d);
  const float mean = BlockSum(sum, partial[0]) / count;
  const float slope = BlockSum(dot, partial[1]) / count;
  for (int c = static_cast<int>(threadIdx.x); c < a.d; c += threads) {
    const float g = a.dy.At(row, c) * a.gamma[c];
    const float dx = s.scale * (g - mean - normalised(c) * slope);
    float& to = a.dx.At(row, c);
    to = a.add ? to + dx : dx;
  }
}

// dgamma and dbeta are sums over rows of these.
struct GammaTerm {
  Elements<const float> x;
  const NormStatistics* statistics;
  Elements<const float> dy;
  __device__ float operator()(int64_t row, int64_t column) const {
    const NormStatistics s = statistics[row];
    return dy.At(row, column) * ((x.At(row, column) - s.mean) * s.scale);
  }
};
struct BetaTerm {
  Elements<const float> dy;
  __device__ float operator()(int64_t row, int64_t column) const { return dy.At(row, column); }
};

template <typename T>
void Normalise(Device& device, const Tensor& x, const Tensor& gamma, const Tensor& beta,
               double epsilon, const Tensor& y) {
  const int64_t threads = NormWarps(x.cols) * kWarp;
  const bool aligned = RowsAreAligned(x, 4) && RowsAreAligned(gamma, 4) &&
                       RowsAreAligned(beta, 4) && RowsAreAligned(y, 4);
  const int64_t places = kNormThreads / threads * device.multiprocessors();
  const int64_t blocks = aligned ? std::min(x.rows, places) : x.rows;
  const LayerNormArguments<T> arguments = {.rows = {.x = DeviceRow<float>(x, 0),
                                                    .x_stride = x.stride,
                                                    .gamma = DeviceRow<float>(gamma, 0),
                                                    .beta = DeviceRow<float>(beta, 0),
                                                    .epsilon = static_cast<float>(epsilon),
                                                    .d = static_cast<int>(x.cols),
                                                    .y = DeviceRow<T>(y, 0),
                                                    .y_stride = y.stride},
                                           .count = static_cast<int>(x.rows),
                                           .ahead = device.TakeExpected(blocks)};
  const Grid grid = {.blocks = dim3(static_cast<unsigned>(blocks)),
                     .threads = dim3(static_cast<unsigned>(threads)),
                     .dependent = true};
  Launch(device, "layer_norm", aligned ? LayerNormKernel<T, 4> : LayerNormKernel<T, 1>, grid,
         arguments);
}

// One block for each row of x.
Grid RowGrid(const Tensor& x) {
  const int64_t warps =
      std::min<int64_t>((x.cols + kWarp - 1) / kWarp, kNormBackwardThreads / kWarp);
  return {.blocks = dim3(static_cast<unsigned>(x.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))};
}

}  // namespace

void LayerNorm(Device& device, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  assert(x.rows == y.rows && x.cols == y.cols && gamma.cols == x.cols && beta.cols == x.cols);
  assert(x.cols <= kMaxNormWidth);
  if (x.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Normalise<BF16>(device, x, gamma, beta, epsilon, y);
  } else {
    Normalise<float>(device, x, gamma, beta, epsilon, y);
  }
}

void LayerNormBackward(Device& device, Tensor x, Tensor gamma, double epsilon, Tensor dy,
                       const Gradient& dx, Tensor dgamma, Tensor dbeta) {
  assert(x.rows == dy.rows && x.cols == dy.cols && gamma.cols == x.cols);
  if (x.rows == 0) return;
  auto* statistics = static_cast<NormStatistics*>(device.Scratch(
      ScratchUse::kNormStatistics, static_cast<size_t>(x.rows) * sizeof(NormStatistics)));
  const auto x_elements = ElementsOf<const float>(x);
  const auto dy_elements = ElementsOf<const float>(dy);
  Launch(device, "norm_statistics", NormStatisticsKernel, RowGrid(x), x_elements,
         static_cast<int>(x.cols), static_cast<float>(epsilon), statistics);
  // dx may replace dy, so it comes last.
  if (dgamma.data != nullptr) {
    AddColumnSums(device, "norm_gamma", {x.rows, x.cols},
                  GammaTerm{x_elements, statistics, dy_elements}, dgamma);
  }
  if (dbeta.data != nullptr) {
    AddColumnSums(device, "norm_beta", {x.rows, x.cols}, BetaTerm{dy_elements}, dbeta);
  }
  if (dx.tensor.data == nullptr) return;
  Launch(device, "norm_backward", NormBackwardKernel, RowGrid(x),
         NormBackwardArguments{.x = x_elements,
                               .gamma = DeviceRow<float>(gamma, 0),
                               .statistics = statistics,
                               .dy = dy_elements,
                               .d = static_cast<int>(x.cols),
                               .dx = ElementsOf<float>(dx.tensor),
                               .add = dx.add});
}

}  // namespace hippodrome::cuda
