#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/quantized_tile.cuh"

namespace hippodrome::cuda {
namespace {

// ---- Inputs ------------------------------------------------------------------------------------

// As bytes, the first one lowest. Products with the inverse are at most 127 and a little, so adding
// 1.5 * 2^23 leaves the nearest integer in the lowest bits, ties to even. Where the scale is a NaN
// the bytes are any.
__device__ inline uint32_t RoundToInt8(const float (&v)[4], float inverse) {
  uint32_t bits[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    bits[i] = __float_as_uint(__fadd_rn(__fmul_rn(v[i], inverse), kStart));
  }
  return __byte_perm(__byte_perm(bits[0], bits[1], 0x0040), __byte_perm(bits[2], bits[3], 0x0040),
                     0x5410);
}

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
  int8_t* to = a.integers + index * kUnitInputs + PlaceInUnit<kWeights>(lane);
  *reinterpret_cast<uint32_t*>(to) = RoundToInt8(v, scale.inverse);
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

// Rows beside weights of kI8 that every warp rounds for itself: less time than a launch takes.
// Beside kI4, with four groups in place of one, it would be more.
struct InputRows {
  const BF16* x;  // rows of x_stride, aligned for pieces
  int64_t x_stride;
  int in;  // a multiple of kInputPiece
};
constexpr int kInputPiece = 8;
constexpr int kInputRows = 8;  // at most

// The same bits as RoundInputsKernel gives. The four lanes of a row have all pieces of a unit,
// which is a group.
__device__ inline InputTile<DType::kI8> RoundInputTile(const InputRows& inputs, int rows, int unit,
                                                       int g, int t) {
  static_assert(kGroups<DType::kI8> == 1);
  constexpr int kPieces = kUnitInputs / kInputPiece / 4;
  const BF16* row = inputs.x + min(g, rows - 1) * inputs.x_stride;
  RowVector<uint32_t, kInputPiece / 2> pieces[kPieces] = {};
  // Of the lower and the upper halves, whose other bits do not matter.
  uint32_t low = 0;
  uint32_t high = 0;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int k = unit * kUnitInputs + i / 2 * 64 + 16 * t + i % 2 * kInputPiece;
    if (k < inputs.in) {
      pieces[i] = LoadVector<uint32_t, kInputPiece / 2>(reinterpret_cast<const uint32_t*>(row + k));
    }
#pragma unroll
    for (const uint32_t pair : pieces[i].values) {
      const uint32_t magnitudes = pair & 0x7fff7fffu;
      low = max(low, magnitudes << 16);
      high = max(high, magnitudes);
    }
  }
  uint32_t largest = max(low, high & 0x7fff0000u);
  largest = max(largest, __shfl_xor_sync(kAllLanes, largest, 1));
  largest = max(largest, __shfl_xor_sync(kAllLanes, largest, 2));
  const GroupScale scale = ActivationScale(__uint_as_float(largest));
  InputTile<DType::kI8> tile = {};
  tile.scales[0][0] = scale.scale;
#pragma unroll
  for (int word = 0; word < 2 * kPieces; ++word) {
    const uint32_t* pairs = pieces[word / 2].values + word % 2 * 2;
    const float v[4] = {__uint_as_float(pairs[0] << 16), __uint_as_float(pairs[0] & 0xffff0000u),
                        __uint_as_float(pairs[1] << 16), __uint_as_float(pairs[1] & 0xffff0000u)};
    tile.x[0].words[word] = RoundToInt8(v, scale.inverse);
  }
  return tile;
}

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

// The products of one share of the depth. kRounds: of `inputs`, else of a.x.
template <DType kWeights, int kTiles, int kRowTiles, bool kRounds, typename Y>
__device__ void MultiplyShare(const QuantizedArguments<Y>& a, const InputRows& inputs,
                              int first_row, int first_column, int share, int lane,
                              float (&sums)[kRowTiles][kTiles][4]) {
  const int g = lane / 4;
  const int t = lane % 4;
  int unit = share * ShareUnits(a.units);
  // Two bounds, as one register less is left for the least of them.
  for (int n = 0; n < ShareUnits(a.units) && unit < a.units; ++n, ++unit) {
    InputTile<kWeights> x;
    if constexpr (!kRounds) x = LoadInputTile<kWeights>(a, first_row, unit, g, t);
    WeightTile<kWeights> w[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      w[tile] = LoadWeightTile<kWeights>(a, first_column + tile * kTileColumns, unit, g, t);
    }
    if constexpr (kRounds) x = RoundInputTile(inputs, a.rows, unit, g, t);
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
template <DType kWeights, int kTiles, int kRowTiles, bool kRounds, typename Y>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    LinearQuantizedKernel(QuantizedArguments<Y> a, InputRows inputs) {
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
  MultiplyShare<kWeights, kTiles, kRowTiles, kRounds>(a, inputs, first_row, first_column, warp,
                                                      lane, sums);
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

template <DType kWeights, int kTiles, int kRowTiles, bool kRounds, typename Y>
void LaunchFewRows(Device& device, const QuantizedArguments<Y>& arguments,
                   const InputRows& inputs) {
  Launch(device, "linear_quantized", LinearQuantizedKernel<kWeights, kTiles, kRowTiles, kRounds, Y>,
         {.blocks = dim3(Blocks(arguments.out, kTiles * kTileColumns),
                         Blocks(arguments.rows, kRowTiles * kTileRows)),
          .threads = dim3(kWarps * kWarp),
          .shared_bytes = kWarps * kRowTiles * kTiles * kTileSums<kTiles> * sizeof(float),
          .dependent = true},
         arguments, inputs);
}

// The widest blocks that leave two for every multiprocessor: they read x less often.
template <DType kWeights, bool kRounds, typename Y>
void LaunchTileOfRows(Device& device, const QuantizedArguments<Y>& arguments,
                      const InputRows& inputs) {
  const int tiles = arguments.out / kTileColumns / (2 * device.multiprocessors());
  if (tiles >= 4) return LaunchFewRows<kWeights, 4, 1, kRounds>(device, arguments, inputs);
  if (tiles >= 2) return LaunchFewRows<kWeights, 2, 1, kRounds>(device, arguments, inputs);
  LaunchFewRows<kWeights, 1, 1, kRounds>(device, arguments, inputs);
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
void Multiply(Device& device, const LinearCall& call) {
  QuantizedArguments<Y> arguments = {.x = nullptr,
                                     .x_scales = nullptr,
                                     .x_scale_rows = 0,
                                     .w = static_cast<const char*>(call.w.data()),
                                     .w_scales = call.w.scales(),
                                     .scale_columns = static_cast<int>(call.w.scale_columns()),
                                     .rows = static_cast<int>(call.x.rows),
                                     .out = static_cast<int>(call.w.out()),
                                     .units = static_cast<int>(call.w.units()),
                                     .epilogue = MakeEpilogue<Y>(call.epilogue, call.y)};
  const bool is_bf16 = call.x.dtype == DType::kBF16;
  if constexpr (kWeights == DType::kI8) {
    if (is_bf16 && call.x.rows <= kInputRows && RowsAreAligned(call.x, kInputPiece)) {
      return LaunchTileOfRows<kWeights, /*kRounds=*/true>(
          device, arguments,
          {DeviceRow<BF16>(call.x, 0), call.x.stride, static_cast<int>(call.x.cols)});
    }
  }
  const auto round = is_bf16 ? RoundInputs<kWeights, BF16> : RoundInputs<kWeights, float>;
  const RoundedInputs x = round(device, call.x, call.w.units());
  arguments.x = x.integers;
  arguments.x_scales = x.scales;
  arguments.x_scale_rows = x.scale_rows;
  if (TakesManyRows<kWeights>(device, arguments.rows, arguments.out)) {
    const bool aligned = EpilogueIsAligned(call.epilogue, call.y, kStoredColumns);
    return MultiplyManyRows<kWeights, Y>(device, arguments, aligned);
  }
  if (call.x.rows > kTileRows) {
    return LaunchFewRows<kWeights, 2, 2, /*kRounds=*/false>(device, arguments, {});
  }
  LaunchTileOfRows<kWeights, /*kRounds=*/false>(device, arguments, {});
}

template <DType kWeights>
void Multiply(Device& device, const LinearCall& call) {
  if (call.y.dtype == DType::kBF16) return Multiply<kWeights, BF16>(device, call);
  Multiply<kWeights, float>(device, call);
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
