#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/linear_epilogue.cuh"
#include "kernels/quantized_group.h"

namespace hippodrome::cuda {
namespace {

// Products of integers on tensor cores. A first kernel rounds the rows of x into units of the order
// of those of W; a second one multiplies. Its blocks own kTiles tiles of 8 columns by kRowTiles of
// 16 rows, and its warps share the depth: warp i takes the units i, i + 8, ... In a warp, lane
// 4 g + t reads a quarter of the unit of column g of each tile, and of rows g and g + 8. The order
// of every sum follows from the shape of W alone, and rows of x never meet.

constexpr int kTileColumns = 8;
constexpr int kTileRows = 16;
// Floats from the sums of a tile to those of the next of kTiles: 32 columns are in as many banks.
template <int kTiles>
constexpr int kTileSums = kTileRows * kTileColumns + kWarp / kTiles % kWarp;
constexpr int kWarps = 8;

// Groups of a unit.
template <DType kWeights>
constexpr int kGroups = kUnitInputs / static_cast<int>(QuantizedGroup(kWeights));

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

// ---- Products ----------------------------------------------------------------------------------

template <typename Y>
struct QuantizedArguments {
  const int8_t* x;        // [rows][units][kUnitInputs]
  const float* x_scales;  // [groups of units][x_scale_rows]
  int x_scale_rows;
  const char* w;  // PackedWeights::data()
  const BF16* w_scales;
  int scale_columns;
  int rows;
  int out;
  int units;
  EpilogueArguments<Y> epilogue;
};

// Bytes of a unit that a lane has.
struct Quarter {
  uint32_t words[8];
};

__device__ inline void SetWords(const uint4& piece, uint32_t* words) {
  words[0] = piece.x;
  words[1] = piece.y;
  words[2] = piece.z;
  words[3] = piece.w;
}

// Of a row of x.
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

// Of a row of W; of kI4 four words, each of a group.
template <DType kWeights>
__device__ inline Quarter LoadWeights(const char* unit, int t) {
  Quarter w;
  SetWords(LoadOnce16(unit + 16 * t, true), w.words);
  if constexpr (kWeights == DType::kI8) SetWords(LoadOnce16(unit + 64 + 16 * t, true), w.words + 4);
  return w;
}

// Four integers of 4 bits, stored 8 higher in the lower halves of bytes, as signed bytes: nothing
// is borrowed over the bit that is set above each.
__device__ inline uint32_t SignedBytes(uint32_t halves) {
  return (((halves & 0x0f0f0f0fu) | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
}

// sums += the groups of a unit, of rows g and g + 8 by columns 2t and 2t + 1.
template <DType kWeights>
__device__ inline void MultiplyUnit(const Quarter (&x)[2], const Quarter& w,
                                    const float (&x_scales)[kGroups<kWeights>][2],
                                    const float (&w_scales)[kGroups<kWeights>][2],
                                    float (&sums)[4]) {
#pragma unroll
  for (int group = 0; group < kGroups<kWeights>; ++group) {
    int32_t dot[4] = {};
    if constexpr (kWeights == DType::kI8) {
      for (int i = 0; i < 8; i += 2) {
        MmaS8(dot, {x[0].words[i], x[1].words[i], x[0].words[i + 1], x[1].words[i + 1]},
              {w.words[i], w.words[i + 1]});
      }
    } else {
      const int i = 2 * group;
      MmaS8(dot, {x[0].words[i], x[1].words[i], x[0].words[i + 1], x[1].words[i + 1]},
            {SignedBytes(w.words[group]), SignedBytes(w.words[group] >> 4)});
    }
    for (int i = 0; i < 4; ++i) {
      sums[i] = fmaf(static_cast<float>(dot[i]) * x_scales[group][i / 2], w_scales[group][i % 2],
                     sums[i]);
    }
  }
}

// The products of one warp's share of the depth. Rows and columns past the last are those of the
// last, for nobody.
template <DType kWeights, int kTiles, int kRowTiles, typename Y>
__device__ void MultiplyShare(const QuantizedArguments<Y>& a, int first_row, int first_column,
                              int warp, int lane, float (&sums)[kRowTiles][kTiles][4]) {
  const int g = lane / 4;
  const int t = lane % 4;
  const int64_t row_bytes = int64_t{a.units} * kUnitInputs / (kWeights == DType::kI8 ? 1 : 2);
  for (int unit = warp; unit < a.units; unit += kWarps) {
    Quarter w[kTiles];
    float w_scales[kTiles][kGroups<kWeights>][2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int column = first_column + tile * kTileColumns;
      w[tile] = LoadWeights<kWeights>(
          a.w + min(column + g, a.out - 1) * row_bytes + unit * (row_bytes / a.units), t);
#pragma unroll
      for (int group = 0; group < kGroups<kWeights>; ++group) {
        const auto pair = LoadVector<BF16, 2>(
            a.w_scales + int64_t{unit * kGroups<kWeights> + group} * a.scale_columns + column +
            2 * t);
        w_scales[tile][group][0] = Widen(pair.values[0]);
        w_scales[tile][group][1] = Widen(pair.values[1]);
      }
    }
#pragma unroll
    for (int row_tile = 0; row_tile < kRowTiles; ++row_tile) {
      Quarter x[2] = {};
      float x_scales[kGroups<kWeights>][2] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int first_of_half = first_row + row_tile * kTileRows + 8 * half;
        if (first_of_half >= a.rows) continue;
        const int row = min(first_of_half + g, a.rows - 1);
        x[half] = LoadInputs(a.x + (int64_t{row} * a.units + unit) * kUnitInputs, t);
#pragma unroll
        for (int group = 0; group < kGroups<kWeights>; ++group) {
          x_scales[group][half] =
              a.x_scales[int64_t{unit * kGroups<kWeights> + group} * a.x_scale_rows + row];
        }
      }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        MultiplyUnit<kWeights>(x, w[tile], x_scales, w_scales[tile], sums[row_tile][tile]);
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
    for (int share = 0; share < kWarps; ++share) sum[0] += from[share * kSums];
    Store(a.epilogue, sum, values, first_row + row, first_column + column);
  }
}

unsigned Blocks(int64_t size, int64_t per_block) {
  return static_cast<unsigned>((size + per_block - 1) / per_block);
}

template <DType kWeights, int kTiles, int kRowTiles, typename Y>
void LaunchProduct(Device& device, const QuantizedArguments<Y>& arguments) {
  Launch(device, "linear_quantized", LinearQuantizedKernel<kWeights, kTiles, kRowTiles, Y>,
         {.blocks = dim3(Blocks(arguments.out, kTiles * kTileColumns),
                         Blocks(arguments.rows, kRowTiles * kTileRows)),
          .threads = dim3(kWarps * kWarp),
          .shared_bytes = kWarps * kRowTiles * kTiles * kTileSums<kTiles> * sizeof(float)},
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
         {.blocks = dim3(Blocks(x.rows * units, kWarps)), .threads = dim3(kWarps * kWarp)},
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
  if (call.x.rows > kTileRows) return LaunchProduct<kWeights, 2, 2>(device, arguments);
  // The widest blocks that leave two for every multiprocessor: they read x less often.
  const int64_t tiles = call.w.out() / kTileColumns / (2 * device.multiprocessors());
  if (tiles >= 4) return LaunchProduct<kWeights, 4, 1>(device, arguments);
  if (tiles >= 2) return LaunchProduct<kWeights, 2, 1>(device, arguments);
  LaunchProduct<kWeights, 1, 1>(device, arguments);
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
