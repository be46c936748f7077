#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/quantized_tile.cuh"

namespace hippodrome::cuda {
namespace {

// ---- Inputs ------------------------------------------------------------------------------------

template <typename X>
struct RoundArguments {
  const X* x;  // rows of x_stride
  int64_t x_stride;
  int rows;
  int in;
  int units;
  int8_t* integers;  // [rows][units][kUnitInputs]
  float* scales;     // [groups of units][scale_rows]
  int scale_rows;
};

// Where the four inputs of a lane go in a unit. Lane t of a product reads 16 bytes at 16 t of each
// half: of kI4, 8 of each group.
template <DType kWeights>
__device__ inline int PlaceInUnit(int lane) {
  if constexpr (kWeights == DType::kI8) return 4 * lane;
  const int group = lane / 8;
  return group / 2 * 64 + lane % 8 / 2 * 16 + group % 2 * 8 + lane % 2 * 4;
}

// A warp rounds a unit of a row.
template <DType kWeights, bool kAligned, typename X>
__global__ void __launch_bounds__(kWarps* kWarp) RoundInputsKernel(RoundArguments<X> a) {
  BeginDependent();
  constexpr int kGroupLanes = kWarp / kGroups<kWeights>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t index = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (index >= int64_t{a.rows} * a.units) return;
  const int64_t row = index / a.units;
  const int unit = static_cast<int>(index % a.units);
  const int k = unit * kUnitInputs + 4 * lane;
  const X* x = a.x + row * a.x_stride;
  float v[4] = {};
  if constexpr (kAligned) {
    if (k < a.in) {
      const auto vector = LoadVector<X, 4>(x + k);
      for (int i = 0; i < 4; ++i) v[i] = Widen(vector.values[i]);
    }
  } else {
    for (int i = 0; i < 4; ++i) v[i] = k + i < a.in ? Widen(x[k + i]) : 0.0f;
  }
  // Magnitudes as integers, so that a NaN is the largest.
  uint32_t largest = 0;
  for (const float value : v) {
    largest = max(largest, __float_as_uint(value) & 0x7fffffffu);
  }
  for (int mask = kGroupLanes / 2; mask > 0; mask /= 2) {
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, mask));
  }
  const GroupScale scale = ActivationScale(__uint_as_float(largest));
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    const float q = scale.inverse == 0 ? 0.0f : rintf(v[i] * scale.inverse);
    bytes |= uint32_t{static_cast<uint8_t>(static_cast<int>(fminf(fmaxf(q, -127.0f), 127.0f)))}
             << 8 * i;
  }
  int8_t* to = a.integers + index * kUnitInputs + PlaceInUnit<kWeights>(lane);
  *reinterpret_cast<uint32_t*>(to) = bytes;
  if (lane % kGroupLanes == 0) {
    const int64_t group = int64_t{unit} * kGroups<kWeights> + lane / kGroupLanes;
    a.scales[group * a.scale_rows + row] = scale.scale;
  }
}

// ---- Few rows ----------------------------------------------------------------------------------
//
// Warps of a block take a share each, so that every warp that runs asks for other weights.

// Floats from the sums of a tile to those of the next of kTiles: 32 columns are in as many banks.
template <int kTiles>
constexpr int kTileSums = kTileRows * kTileColumns + kWarp / kTiles % kWarp;

__device__ inline void SetWords(const uint4& piece, uint32_t* words) {
  words[0] = piece.x;
  words[1] = piece.y;
  words[2] = piece.z;
  words[3] = piece.w;
}

// Of a row of x, from device memory.
__device__ inline Quarter LoadInputs(const int8_t* unit, int t) {
  const auto* first = reinterpret_cast<const uint32_t*>(unit + 16 * t);
  const auto low = LoadVector<uint32_t, 4>(first);
  const auto high = LoadVector<uint32_t, 4>(first + 16);
  Quarter x;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x.words[i] = low.values[i];
    x.words[4 + i] = high.values[i];
  }
  return x;
}

// Of a row of W, from device memory; of kI4 four words, each of a group.
template <DType kWeights>
__device__ inline Quarter LoadWeights(const char* unit, int t) {
  Quarter w;
  SetWords(LoadOnce16(unit + 16 * t, true), w.words);
  if constexpr (kWeights == DType::kI8) SetWords(LoadOnce16(unit + 64 + 16 * t, true), w.words + 4);
  return w;
}

// What a lane has of a unit of a tile of rows, and of columns.
template <DType kWeights>
struct InputTile {
  Quarter x[2];
  float scales[kGroups<kWeights>][2];
};
template <DType kWeights>
struct WeightTile {
  Quarter w;
  RowVector<BF16, 2> scales[kGroups<kWeights>];
};

// Rows past the last are those of the last, for nobody; zeros, where all eight are.
template <DType kWeights, typename Y>
__device__ inline InputTile<kWeights> LoadInputTile(const QuantizedArguments<Y>& a, int first_row,
                                                    int unit, int g, int t) {
  InputTile<kWeights> tile = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (first_row + 8 * half >= a.rows) continue;
    const int row = min(first_row + 8 * half + g, a.rows - 1);
    tile.x[half] = LoadInputs(a.x + (int64_t{row} * a.units + unit) * kUnitInputs, t);
#pragma unroll
    for (int group = 0; group < kGroups<kWeights>; ++group) {
      tile.scales[group][half] =
          a.x_scales[int64_t{unit * kGroups<kWeights> + group} * a.x_scale_rows + row];
    }
  }
  return tile;
}

// Columns past the last are the last, for nobody.
template <DType kWeights, typename Y>
__device__ inline WeightTile<kWeights> LoadWeightTile(const QuantizedArguments<Y>& a, int column,
                                                      int unit, int g, int t) {
  WeightTile<kWeights> tile;
  const int64_t index = int64_t{min(column + g, a.out - 1)} * a.units + unit;
  tile.w = LoadWeights<kWeights>(a.w + index * kUnitBytes<kWeights>, t);
#pragma unroll
  for (int group = 0; group < kGroups<kWeights>; ++group) {
    tile.scales[group] = LoadVector<BF16, 2>(
        a.w_scales + int64_t{unit * kGroups<kWeights> + group} * a.scale_columns + column + 2 * t);
  }
  return tile;
}

// The products of one share of the depth.
template <DType kWeights, int kTiles, int kRowTiles, typename Y>
__device__ void MultiplyShare(const QuantizedArguments<Y>& a, int first_row, int first_column,
                              int share, int lane, float (&sums)[kRowTiles][kTiles][4]) {
  const int g = lane / 4;
  const int t = lane % 4;
  int unit = share * ShareUnits(a.units);
  // Two bounds, as one register less is left for the least of them.
  for (int n = 0; n < ShareUnits(a.units) && unit < a.units; ++n, ++unit) {
    auto x = LoadInputTile<kWeights>(a, first_row, unit, g, t);
    WeightTile<kWeights> w[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      w[tile] = LoadWeightTile<kWeights>(a, first_column + tile * kTileColumns, unit, g, t);
    }
#pragma unroll
    for (int row_tile = 0; row_tile < kRowTiles; ++row_tile) {
      if (row_tile > 0) {
        x = LoadInputTile<kWeights>(a, first_row + row_tile * kTileRows, unit, g, t);
      }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        MultiplyUnit<kWeights>(x.x, w[tile].w, x.scales, w[tile].scales, sums[row_tile][tile]);
      }
    }
  }
}

// Blocks: (columns / (8 kTiles), rows / (16 kRowTiles)), rounded up; 8 warps; shared memory for the
// sums of each, [kRowTiles][kTiles][kTileSums].
template <DType kWeights, int kTiles, int kRowTiles, typename Y>
__global__ void __launch_bounds__(kWarps* kWarp, 2) LinearQuantizedKernel(QuantizedArguments<Y> a) {
  constexpr int kSums = kRowTiles * kTiles * kTileSums<kTiles>;
  float* shared = reinterpret_cast<float*>(SharedMemory());
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp;
  const int lane = thread % kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * kRowTiles * kTileRows;
  const int first_column = static_cast<int>(blockIdx.x) * kTiles * kTileColumns;
  LaunchDependents();
  const int64_t row_bytes = int64_t{a.units} * kUnitBytes<kWeights>;
  PrefetchToL2(thread == 0, a.w + first_column * row_bytes,
               row_bytes * min(kTiles * kTileColumns, a.out - first_column));
  WaitForPrerequisites();
  float sums[kRowTiles][kTiles][4] = {};
  MultiplyShare<kWeights>(a, first_row, first_column, warp, lane, sums);
  for (int row_tile = 0; row_tile < kRowTiles; ++row_tile) {
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int half = 0; half < 2; ++half) {
        const float(&pair)[4] = sums[row_tile][tile];
        float* to = shared + warp * kSums + (row_tile * kTiles + tile) * kTileSums<kTiles> +
                    (lane / 4 + 8 * half) * kTileColumns + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) = make_float2(pair[2 * half], pair[2 * half + 1]);
      }
    }
  }
  __syncthreads();
  constexpr int kColumns = kTiles * kTileColumns;
  for (int i = thread; i < kRowTiles * kTileRows * kColumns; i += kWarps * kWarp) {
    const int row = i / kColumns;
    const int column = i % kColumns;
    if (first_row + row >= a.rows || first_column + column >= a.out) continue;
    const auto values = LoadEpilogue<1>(a.epilogue, first_row + row, first_column + column);
    const float* from = shared +
                        (row / kTileRows * kTiles + column / kTileColumns) * kTileSums<kTiles> +
                        row % kTileRows * kTileColumns + column % kTileColumns;
    float sum[1] = {};
    for (int share = 0; share < kShares; ++share) sum[0] += from[share * kSums];
    Store(a.epilogue, sum, values, first_row + row, first_column + column);
  }
}

// ---- Launches ----------------------------------------------------------------------------------

template <DType kWeights, int kTiles, int kRowTiles, typename Y>
void LaunchFewRows(Device& device, const QuantizedArguments<Y>& arguments) {
  Launch(device, "linear_quantized", LinearQuantizedKernel<kWeights, kTiles, kRowTiles, Y>,
         {.blocks = dim3(Blocks(arguments.out, kTiles * kTileColumns),
                         Blocks(arguments.rows, kRowTiles * kTileRows)),
          .threads = dim3(kWarps * kWarp),
          .shared_bytes = kWarps * kRowTiles * kTiles * kTileSums<kTiles> * sizeof(float),
          .dependent = true},
         arguments);
}

// Rows of x in integers, in scratch memory.
struct RoundedInputs {
  int8_t* integers;
  float* scales;
  int scale_rows;
};

template <DType kWeights, typename X>
RoundedInputs RoundInputs(Device& device, const Tensor& x, int64_t units) {
  const int64_t scale_rows = (x.rows + kTileRows - 1) / kTileRows * kTileRows;
  const auto integers = static_cast<size_t>(x.rows * units * kUnitInputs);
  const auto scales = static_cast<size_t>(units * kGroups<kWeights> * scale_rows) * sizeof(float);
  auto* scratch =
      static_cast<char*>(device.Scratch(ScratchUse::kQuantizedInputs, integers + scales));
  const RoundedInputs rounded = {.integers = reinterpret_cast<int8_t*>(scratch),
                                 .scales = reinterpret_cast<float*>(scratch + integers),
                                 .scale_rows = static_cast<int>(scale_rows)};
  Launch(device, "round_inputs",
         RowsAreAligned(x, 4) ? RoundInputsKernel<kWeights, true, X>
                              : RoundInputsKernel<kWeights, false, X>,
         {.blocks = dim3(Blocks(x.rows * units, kWarps)),
          .threads = dim3(kWarps * kWarp),
          .dependent = true},
         RoundArguments<X>{.x = DeviceRow<X>(x, 0),
                           .x_stride = x.stride,
                           .rows = static_cast<int>(x.rows),
                           .in = static_cast<int>(x.cols),
                           .units = static_cast<int>(units),
                           .integers = rounded.integers,
                           .scales = rounded.scales,
                           .scale_rows = rounded.scale_rows});
  return rounded;
}

// Blocks of many rows must be as many as half of the multiprocessors: others leave more waiting
// than they spare.
template <DType kWeights>
bool TakesManyRows(Device& device, int64_t rows, int64_t out) {
  const unsigned blocks = Blocks(rows, kBlockRows<kWeights>) * Blocks(out, kBlockColumns);
  return rows > kFewRows && 2 * blocks >= static_cast<unsigned>(device.multiprocessors());
}

template <DType kWeights, typename Y>
void Multiply(Device& device, const LinearCall& call, const RoundedInputs& x) {
  const QuantizedArguments<Y> arguments = {
      .x = x.integers,
      .x_scales = x.scales,
      .x_scale_rows = x.scale_rows,
      .w = static_cast<const char*>(call.w.data()),
      .w_scales = call.w.scales(),
      .scale_columns = static_cast<int>(call.w.scale_columns()),
      .rows = static_cast<int>(call.x.rows),
      .out = static_cast<int>(call.w.out()),
      .units = static_cast<int>(call.w.units()),
      .epilogue = MakeEpilogue<Y>(call.epilogue, call.y)};
  if (TakesManyRows<kWeights>(device, arguments.rows, arguments.out)) {
    const bool aligned = EpilogueIsAligned(call.epilogue, call.y, kStoredColumns);
    return MultiplyManyRows<kWeights, Y>(device, arguments, aligned);
  }
  if (call.x.rows > kTileRows) return LaunchFewRows<kWeights, 2, 2>(device, arguments);
  // The widest blocks that leave two for every multiprocessor: they read x less often.
  const int64_t tiles = call.w.out() / kTileColumns / (2 * device.multiprocessors());
  if (tiles >= 4) return LaunchFewRows<kWeights, 4, 1>(device, arguments);
  if (tiles >= 2) return LaunchFewRows<kWeights, 2, 1>(device, arguments);
  LaunchFewRows<kWeights, 1, 1>(device, arguments);
}

template <DType kWeights>
void Multiply(Device& device, const LinearCall& call) {
  const auto round =
      call.x.dtype == DType::kBF16 ? RoundInputs<kWeights, BF16> : RoundInputs<kWeights, float>;
  const RoundedInputs x = round(device, call.x, call.w.units());
  if (call.y.dtype == DType::kBF16) return Multiply<kWeights, BF16>(device, call, x);
  Multiply<kWeights, float>(device, call, x);
}

}  // namespace

void LinearQuantized(Device& device, const LinearCall& call) {
  assert(call.x.cols == call.w.in() && call.y.cols == call.w.out());
  assert(call.x.rows == call.y.rows);
  if (call.x.rows == 0) return;
  if (call.w.dtype() == DType::kI8) return Multiply<DType::kI8>(device, call);
  Multiply<DType::kI4>(device, call);
}

}  // namespace hippodrome::cuda
