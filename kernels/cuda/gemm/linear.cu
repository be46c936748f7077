#include "kernels/cuda/gemm/linear.h"

#include <type_traits>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/base/row_norm.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear_epilogue.cuh"
#include "kernels/quantized_group.h"

namespace hippodrome::cuda {
namespace {

// The kernel of LinearStep: products of up to 8 rows, at the speed at which weights can be read.
//
// A block owns kTiles tiles of 8 output columns. Its warps share the depth: warp i takes the units
// i, i + 8, ... of 128 bytes of every row of W. In a warp, lane = 4 g + t reads row g of a tile, of
// each half of a unit the 16 bytes at 16 t; these are called a piece. The order of every sum
// follows from the shape of W alone, and rows of x never meet.

constexpr int kTileColumns = 8;
constexpr int kTileSums = kStepRows * kTileColumns;
constexpr int kStepWarps = 8;

// Pieces of W that a lane has under way at a time.
constexpr int kPiecesInFlight = 8;

// Blocks that a multiprocessor has registers for.
template <typename X, int kTiles>
constexpr int kBlocksAtOnce = sizeof(X) == sizeof(BF16) && kTiles < 4 ? 3 : 2;

// Elements of T in a piece.
template <typename T>
constexpr int kPiece = 16 / sizeof(T);

// X, W, Y: <BF16, BF16, BF16 or float>, <float, BF16, float> (x is rounded), <float, float, float>.
template <typename X, typename W, typename Y>
struct LinearStepArguments {
  const X* x;  // rows of x_stride
  int64_t x_stride;
  const W* w;  // [out, in]
  int64_t rows;
  int in;
  int out;
  EpilogueArguments<Y> epilogue;
};

// What one block multiplies.
template <typename X, typename W>
struct StepBlock {
  const X* x;
  int64_t x_stride;
  int rows;  // <= kStepRows
  const W* w;
  int columns;  // rows of W that are left
  int in;
};

// Where the lane's piece `i` begins, counted from the warp's unit `unit`.
template <typename W>
__device__ inline int PieceBegin(int unit, int i, int t) {
  return (((unit + i / 2 * kStepWarps) * 2 + i % 2) * 4 + t) * kPiece<W>;
}

__device__ inline uint4 PackPiece(const float (&v)[4]) {
  return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                    __float_as_uint(v[3]));
}
__device__ inline uint4 PackPiece(const float (&v)[8]) {
  return make_uint4(PackBF16(v[0], v[1]), PackBF16(v[2], v[3]), PackBF16(v[4], v[5]),
                    PackBF16(v[6], v[7]));
}

// Elements k, k + 1, ... of a row as a piece of type W; zeros from `limit` on.
template <typename W, bool kAligned, typename X>
__device__ uint4 LoadPiece(const X* row, int k, int limit) {
  if constexpr (kAligned && sizeof(X) == sizeof(W)) {
    return k < limit ? *reinterpret_cast<const uint4*>(row + k) : make_uint4(0, 0, 0, 0);
  }
  float values[kPiece<W>] = {};
  if constexpr (kAligned) {
    if (k < limit) {
      const auto v = LoadVector<X, kPiece<W>>(row + k);
      for (int i = 0; i < kPiece<W>; ++i) values[i] = Widen(v.values[i]);
    }
  } else {
    for (int i = 0; i < kPiece<W>; ++i) values[i] = k + i < limit ? Widen(row[k + i]) : 0.0f;
  }
  return PackPiece(values);
}

// Rows of W that a lane reads.
template <typename W, int kTiles, bool kAligned>
struct WeightRows {
  __device__ WeightRows(const W* w, int in, int columns, int g) {
    for (int tile = 0; tile < kTiles; ++tile) {
      const int column = tile * kTileColumns + g;
      limits[tile] = column < columns ? in : 0;
      rows[tile] = w + int64_t{column < columns ? column : 0} * in;
    }
  }
  __device__ uint4 Load(int tile, int k) const {
    if constexpr (kAligned) {
      return LoadOnce16(rows[tile] + k, k < limits[tile]);
    } else {
      return LoadPiece<W, false>(rows[tile], k, limits[tile]);
    }
  }

  const W* rows[kTiles];
  int limits[kTiles];
};

// The products of one warp's share of the depth, into sums [kTiles][kStepRows][kTileColumns]. On
// tensor cores: x is A, whose lower 8 rows are zero, and W is B. Both name the depth in the order
// in which the lanes read it.
template <int kTiles, bool kAligned, typename X>
__device__ void MultiplyShare(const StepBlock<X, BF16>& block, int warp, int lane, float* sums) {
  constexpr int kPieces = kAligned ? kPiecesInFlight / kTiles : 2;
  const int g = lane / 4;
  const int t = lane % 4;
  const X* x = block.x + (g < block.rows ? g : 0) * block.x_stride;
  const int x_limit = g < block.rows ? block.in : 0;
  const WeightRows<BF16, kTiles, kAligned> weights(block.w, block.in, block.columns, g);
  float d[kTiles][4] = {};
  for (int unit = warp; PieceBegin<BF16>(unit, 0, 0) < block.in; unit += kPieces / 2 * kStepWarps) {
    uint4 a[kPieces];
    uint4 b[kPieces][kTiles];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int k = PieceBegin<BF16>(unit, i, t);
      for (int tile = 0; tile < kTiles; ++tile) b[i][tile] = weights.Load(tile, k);
      a[i] = LoadPiece<BF16, kAligned>(x, k, x_limit);
    }
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      for (int tile = 0; tile < kTiles; ++tile) {
        MmaBF16(d[tile], {a[i].x, 0, a[i].y, 0}, {b[i][tile].x, b[i][tile].y});
        MmaBF16(d[tile], {a[i].z, 0, a[i].w, 0}, {b[i][tile].z, b[i][tile].w});
      }
    }
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    float* to = sums + tile * kTileSums + g * kTileColumns + 2 * t;
    *reinterpret_cast<float2*>(to) = make_float2(d[tile][0], d[tile][1]);
  }
}

// The same in f32: lane (g, t) sums column g of every tile for all rows.
template <int kTiles, bool kAligned>
__device__ void MultiplyShare(const StepBlock<float, float>& block, int warp, int lane,
                              float* sums) {
  constexpr int kPieces = kAligned ? kPiecesInFlight / kTiles : 2;
  const int g = lane / 4;
  const int t = lane % 4;
  const WeightRows<float, kTiles, kAligned> weights(block.w, block.in, block.columns, g);
  float d[kTiles][kStepRows] = {};
  for (int unit = warp; PieceBegin<float>(unit, 0, 0) < block.in;
       unit += kPieces / 2 * kStepWarps) {
    uint4 b[kPieces][kTiles];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int k = PieceBegin<float>(unit, i, t);
      for (int tile = 0; tile < kTiles; ++tile) b[i][tile] = weights.Load(tile, k);
    }
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int k = PieceBegin<float>(unit, i, t);
#pragma unroll
      for (int row = 0; row < kStepRows; ++row) {
        if (row >= block.rows) continue;
        const uint4 a = LoadPiece<float, kAligned>(block.x + row * block.x_stride, k, block.in);
        for (int tile = 0; tile < kTiles; ++tile) {
          float& sum = d[tile][row];
          sum = fmaf(__uint_as_float(a.x), __uint_as_float(b[i][tile].x), sum);
          sum = fmaf(__uint_as_float(a.y), __uint_as_float(b[i][tile].y), sum);
          sum = fmaf(__uint_as_float(a.z), __uint_as_float(b[i][tile].z), sum);
          sum = fmaf(__uint_as_float(a.w), __uint_as_float(b[i][tile].w), sum);
        }
      }
    }
  }
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int row = 0; row < kStepRows; ++row) {
      float sum = d[tile][row];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      if (row / 2 == t) sums[tile * kTileSums + row * kTileColumns + g] = sum;
    }
  }
}

template <int kTiles>
constexpr int kStepSums = kStepWarps * kTiles * kTileSums;

// What the block of threads multiplies.
template <int kTiles, typename X, typename W, typename Y>
__device__ StepBlock<X, W> BlockOf(const LinearStepArguments<X, W, Y>& a) {
  const int64_t first_row = int64_t{blockIdx.y} * kStepRows;
  const int first_column = static_cast<int>(blockIdx.x) * kTiles * kTileColumns;
  return {.x = a.x + first_row * a.x_stride,
          .x_stride = a.x_stride,
          .rows = static_cast<int>(min(a.rows - first_row, int64_t{kStepRows})),
          .w = a.w + int64_t{first_column} * a.in,
          .columns = a.out - first_column,
          .in = a.in};
}

template <int kTiles, typename X, typename W>
__device__ void PrefetchWeights(const StepBlock<X, W>& block) {
  const int64_t values = int64_t{block.in} * min(kTiles * kTileColumns, block.columns);
  PrefetchToL2(threadIdx.x == 0, block.w, values * static_cast<int64_t>(sizeof(W)));
}

// sums: kStepSums, shared.
template <int kTiles, bool kAligned, typename X, typename W, typename Y>
__device__ void MultiplyBlock(const StepBlock<X, W>& block, const EpilogueArguments<Y>& epilogue,
                              float* sums) {
  constexpr int kColumns = kTiles * kTileColumns;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_row = int64_t{blockIdx.y} * kStepRows;
  const int first_column = static_cast<int>(blockIdx.x) * kColumns;
  const int row = thread / kColumns;
  const int column = thread % kColumns;
  const bool stores = row < block.rows && column < block.columns;
  EpilogueValues<1> values = {};
  if (stores) values = LoadEpilogue<1>(epilogue, first_row + row, first_column + column);

  const int warp = thread / kWarp;
  MultiplyShare<kTiles, kAligned>(block, warp, thread % kWarp, sums + warp * kTiles * kTileSums);
  __syncthreads();
  if (!stores) return;
  const float* from =
      sums + column / kTileColumns * kTileSums + row * kTileColumns + column % kTileColumns;
  float sum[1] = {};
  for (int i = 0; i < kStepWarps; ++i) sum[0] += from[i * kTiles * kTileSums];
  Store(epilogue, sum, values, first_row + row, first_column + column);
}

// Blocks: (columns / (kTiles * 8), rows / 8), rounded up; 8 warps; shared memory for
// kStepSums floats. kAligned: every row of x and W can be read in pieces.
template <typename X, typename W, typename Y, int kTiles, bool kAligned>
__global__ void __launch_bounds__(kStepWarps* kWarp, (kBlocksAtOnce<X, kTiles>))
    LinearStepKernel(LinearStepArguments<X, W, Y> a) {
  const StepBlock<X, W> block = BlockOf<kTiles>(a);
  LaunchDependents();
  if constexpr (kAligned) PrefetchWeights<kTiles>(block);
  WaitForPrerequisites();
  MultiplyBlock<kTiles, kAligned>(block, a.epilogue, reinterpret_cast<float*>(SharedMemory()));
}

// The same behind a LayerNorm, whose rows lie in shared memory behind the sums.

// From row to row: half of all banks apart, so that a quarter of a warp, which reads two rows,
// meets each bank once.
int NormedStride(int in) { return (in + 63) / 64 * 64 + 32; }

// Blocks of a multiprocessor that normalise for themselves: more take as long as a launch does.
constexpr int64_t kNormingBlocks = 4;

// warps: of a row. norm.y is not used.
template <int kTiles>
__global__ void __launch_bounds__(kStepWarps* kWarp, (kBlocksAtOnce<BF16, kTiles>))
    LayerNormLinearStepKernel(LinearStepArguments<BF16, BF16, BF16> a, NormRows<BF16> norm,
                              int warps) {
  __shared__ float partials[2][2 * kStepWarps];
  auto* const sums = reinterpret_cast<float*>(SharedMemory());
  auto* const inputs = reinterpret_cast<BF16*>(sums + kStepSums<kTiles>);
  StepBlock<BF16, BF16> block = BlockOf<kTiles>(a);
  block.x = inputs;
  block.x_stride = norm.y_stride;
  norm.y = inputs;

  const int thread = static_cast<int>(threadIdx.x);
  const int threads = warps * kWarp;
  const int row = thread / threads;  // warps that are left have none
  using Norm = RowNorm<BF16, 4>;
  const Norm row_norm(norm, thread % threads, threads);
  LaunchDependents();
  PrefetchWeights<kTiles>(block);
  row_norm.PrefetchParameters();
  WaitForPrerequisites();
  typename Norm::Values v = {};
  if (row < block.rows) row_norm.Load(row, v);
  const NormStatistics statistics =
      row_norm.Statistics(v, partials[0] + row * warps, partials[1] + row * warps);
  if (row < block.rows) row_norm.Store(v, statistics, row);
  __syncthreads();
  MultiplyBlock<kTiles, true>(block, a.epilogue, sums);
}

unsigned Blocks(int64_t size, int64_t per_block) {
  return static_cast<unsigned>((size + per_block - 1) / per_block);
}

template <typename X, typename W, typename Y, int kTiles, bool kAligned>
void LaunchStep(Device& device, const LinearStepArguments<X, W, Y>& arguments) {
  Launch(device, "linear_step", LinearStepKernel<X, W, Y, kTiles, kAligned>,
         {.blocks =
              dim3(Blocks(arguments.out, kTiles * kTileColumns), Blocks(arguments.rows, kStepRows)),
          .threads = dim3(kStepWarps * kWarp),
          .shared_bytes = kStepSums<kTiles> * sizeof(float),
          .dependent = true},
         arguments);
}

template <int kTiles>
void LaunchNormed(Device& device, const LinearStepArguments<BF16, BF16, BF16>& arguments,
                  const NormRows<BF16>& norm) {
  Launch(device, "layer_norm_linear_step", LayerNormLinearStepKernel<kTiles>,
         {.blocks = dim3(Blocks(arguments.out, kTiles * kTileColumns)),
          .threads = dim3(kStepWarps * kWarp),
          .shared_bytes =
              kStepSums<kTiles> * sizeof(float) + arguments.rows * norm.y_stride * sizeof(BF16),
          .dependent = true},
         arguments, norm, static_cast<int>(NormWarps(arguments.in)));
}

template <typename X, typename W, typename Y>
LinearStepArguments<X, W, Y> MakeArguments(const LinearCall& call) {
  return {.x = DeviceRow<X>(call.x, 0),
          .x_stride = call.x.stride,
          .w = static_cast<const W*>(call.w.data()),
          .rows = call.x.rows,
          .in = static_cast<int>(call.w.in()),
          .out = static_cast<int>(call.w.out()),
          .epilogue = MakeEpilogue<Y>(call.epilogue, call.y)};
}

// The widest blocks that leave two for every multiprocessor: they read x less often. Calls `launch`
// with their tiles.
template <typename Launch>
void WithTiles(const Device& device, int64_t columns, const Launch& launch) {
  const int64_t tiles = columns / kTileColumns / (2 * device.multiprocessors());
  if (tiles >= 4) return launch(std::integral_constant<int, 4>());
  if (tiles >= 2) return launch(std::integral_constant<int, 2>());
  launch(std::integral_constant<int, 1>());
}

template <typename X, typename W, typename Y>
void Step(Device& device, const LinearCall& call) {
  const auto arguments = MakeArguments<X, W, Y>(call);
  if (!RowsAreAligned(call.x, kPiece<W>)) {  // of as many columns as W
    return LaunchStep<X, W, Y, 1, false>(device, arguments);
  }
  WithTiles(device, call.w.out(), [&](auto tiles) {
    LaunchStep<X, W, Y, decltype(tiles)::value, true>(device, arguments);
  });
}

}  // namespace

void LinearStep(Device& device, const LinearCall& call) {
  assert(call.x.cols == call.w.in() && call.y.cols == call.w.out());
  assert(call.x.rows == call.y.rows);
  if (call.x.rows == 0) return;
  if (call.w.dtype() == DType::kF32) {
    Step<float, float, float>(device, call);
  } else if (call.x.dtype == DType::kF32) {
    Step<float, BF16, float>(device, call);
  } else if (call.y.dtype == DType::kF32) {
    Step<BF16, BF16, float>(device, call);
  } else {
    Step<BF16, BF16, BF16>(device, call);
  }
}

bool CanNormalizeInside(const Device& device, const Tensor& x, const NormParameters& norm,
                        const LinearCall& call) {
  const bool types = call.x.dtype == DType::kBF16 && call.w.dtype() == DType::kBF16 &&
                     call.y.dtype == DType::kBF16;
  const bool at_once = x.rows * NormWarps(x.cols) <= kStepWarps;
  const bool vectors = call.w.in() % kPiece<BF16> == 0 && RowsAreAligned(x, 4) &&
                       RowsAreAligned(norm.gamma, 4) && RowsAreAligned(norm.beta, 4);
  int64_t blocks = 0;
  WithTiles(device, call.w.out(),
            [&](auto tiles) { blocks = Blocks(call.w.out(), tiles * kTileColumns); });
  return types && x.rows > 0 && at_once && vectors &&
         blocks <= kNormingBlocks * device.multiprocessors();
}

void LayerNormLinearStep(Device& device, const Tensor& x, const NormParameters& norm,
                         const LinearCall& call) {
  assert(CanNormalizeInside(device, x, norm, call));
  assert(x.cols == call.w.in() && call.y.cols == call.w.out() && x.rows == call.y.rows);
  const NormRows<BF16> rows = {.x = DeviceRow<float>(x, 0),
                               .x_stride = x.stride,
                               .gamma = DeviceRow<float>(norm.gamma, 0),
                               .beta = DeviceRow<float>(norm.beta, 0),
                               .epsilon = static_cast<float>(norm.epsilon),
                               .d = static_cast<int>(x.cols),
                               .y = nullptr,
                               .y_stride = NormedStride(static_cast<int>(x.cols))};
  const auto arguments = MakeArguments<BF16, BF16, BF16>(call);
  WithTiles(device, call.w.out(),
            [&](auto tiles) { LaunchNormed<decltype(tiles)::value>(device, arguments, rows); });
}

std::optional<size_t> ChooseCandidate(std::span<const MatmulCandidate> candidates,
                                      size_t workspace_bytes) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].supported && candidates[i].workspace_bytes <= workspace_bytes) return i;
  }
  return std::nullopt;
}

void Linear(Device& device, MatmulLibrary* library, const LinearCall& call) {
  if (IsQuantized(call.w.dtype())) return LinearQuantized(device, call);
  if (call.x.rows > kStepRows && library != nullptr && library->Linear(device, call)) return;
  LinearStep(device, call);
}

}  // namespace hippodrome::cuda
