#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/gemm/quantized_tile.cuh"

namespace hippodrome::cuda {
namespace {

// Blocks keep the units of their rows and columns in shared memory, where the next ones arrive
// while a unit is multiplied. A warp adds up all shares of its own tiles.

constexpr int kSumsStride = kBlockColumns + 8;  // lanes of a tile are in different banks

// A warp has a tile of rows, and so many of columns.
template <DType kWeights>
constexpr int kRowWarps = kBlockRows<kWeights> / kTileRows;
template <DType kWeights>
constexpr int kWarpTiles = kBlockColumns / kTileColumns / (kWarps / kRowWarps<kWeights>);

// What a block multiplies at a time. Pieces of 16 bytes of odd rows have changed halves, so that
// the eight that lanes of two rows read at once are in different banks; rows of 4 bits are half as
// long, and do so as they are.
template <DType kWeights>
struct Stage {
  int8_t x[kBlockRows<kWeights>][kUnitInputs];
  char w[kBlockColumns][kUnitBytes<kWeights>];
  float x_scales[kGroups<kWeights>][kBlockRows<kWeights>];
  BF16 w_scales[kGroups<kWeights>][kBlockColumns];
};

constexpr int kPieceBytes = 16;

// Where piece `piece` of a row of `bytes` is.
template <int kBytes>
__device__ inline int PlaceOfPiece(int row, int piece) {
  return kPieceBytes * (kBytes == kUnitInputs ? piece ^ (row & 1) << 2 : piece);
}

// Starts to copy the units of kRowCount rows, and zeros for those past `valid`.
template <int kRowCount, int kBytes>
__device__ inline void CopyUnits(void* to, const void* from, int64_t stride, int valid,
                                 int thread) {
  constexpr int kPieces = kBytes / kPieceBytes;
  constexpr int kTogether = kWarps * kWarp / kPieces;  // rows, an even number
  const int row = thread / kPieces;
  const int piece = thread % kPieces;
  char* place = static_cast<char*>(to) + row * kBytes + PlaceOfPiece<kBytes>(row, piece);
  const char* source = static_cast<const char*>(from) + row * stride + piece * kPieceBytes;
#pragma unroll 2  // all at once takes registers that sums need
  for (int i = 0; i < kRowCount / kTogether; ++i) {
    CopyAsync16(place + i * kTogether * kBytes, source + i * kTogether * stride,
                row + i * kTogether < valid);
  }
}

// kCount scales of each group, of which there are `valid`, a multiple of a piece.
template <int kGroupCount, int kCount, typename T>
__device__ inline void CopyScales(T (&to)[kGroupCount][kCount], const T* from, int stride,
                                  int valid, int thread) {
  constexpr int kScales = kPieceBytes / sizeof(T);
  constexpr int kPieces = kCount / kScales;
  if (thread >= kGroupCount * kPieces) return;
  const int group = thread / kPieces;
  const int first = thread % kPieces * kScales;
  CopyAsync16(&to[group][first], from + int64_t{group} * stride + first, first < valid);
}

template <DType kWeights, typename Y>
__device__ inline void CopyStage(const QuantizedArguments<Y>& a, int first_row, int first_column,
                                 int unit, int thread, Stage<kWeights>& to) {
  constexpr int kBytes = kUnitBytes<kWeights>;
  CopyUnits<kBlockRows<kWeights>, kUnitInputs>(
      to.x, a.x + (int64_t{first_row} * a.units + unit) * kUnitInputs,
      int64_t{a.units} * kUnitInputs, a.rows - first_row, thread);
  CopyUnits<kBlockColumns, kBytes>(to.w, a.w + (int64_t{first_column} * a.units + unit) * kBytes,
                                   int64_t{a.units} * kBytes, a.out - first_column, thread);
  const int64_t group = int64_t{unit} * kGroups<kWeights>;
  CopyScales(to.x_scales, a.x_scales + group * a.x_scale_rows + first_row, a.x_scale_rows,
             a.x_scale_rows - first_row, thread);
  CopyScales(to.w_scales, a.w_scales + group * a.scale_columns + first_column, a.scale_columns,
             a.scale_columns - first_column, thread);
  CommitCopies();
}

// Of a row of a stage.
template <int kBytes>
__device__ inline Quarter SharedQuarter(const void* rows, int row, int t) {
  const char* from = static_cast<const char*>(rows) + row * kBytes;
  Quarter quarter;
#pragma unroll
  for (int half = 0; half < kBytes / 64; ++half) {
    const int place = PlaceOfPiece<kBytes>(row, 4 * half + t);
    const auto piece = LoadVector<uint32_t, 4>(reinterpret_cast<const uint32_t*>(from + place));
    for (int i = 0; i < 4; ++i) quarter.words[4 * half + i] = piece.values[i];
  }
  return quarter;
}

// sums += the groups of a unit, of the tiles from (row, column) of the block on.
template <DType kWeights, int kTiles>
__device__ inline void MultiplyStage(const Stage<kWeights>& stage, int row, int column, int lane,
                                     float (&sums)[kTiles][4]) {
  const int g = lane / 4;
  const int t = lane % 4;
  Quarter x[2];
  float x_scales[kGroups<kWeights>][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int of_lane = row + 8 * half + g;
    x[half] = SharedQuarter<kUnitInputs>(stage.x, of_lane, t);
    for (int group = 0; group < kGroups<kWeights>; ++group) {
      x_scales[group][half] = stage.x_scales[group][of_lane];
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int first = column + tile * kTileColumns;
    const Quarter w = SharedQuarter<kUnitBytes<kWeights>>(stage.w, first + g, t);
    RowVector<BF16, 2> w_scales[kGroups<kWeights>];
    for (int group = 0; group < kGroups<kWeights>; ++group) {
      w_scales[group] = LoadVector<BF16, 2>(&stage.w_scales[group][first + 2 * t]);
    }
    MultiplyUnit<kWeights>(x, w, x_scales, w_scales, sums[tile]);
  }
}

// sums[row][column] of a block, in shared memory, from what a warp has.
template <int kTiles>
__device__ inline void GatherSums(const float (&totals)[kTiles][4], int row, int column, int lane,
                                  float* sums) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* to = sums + (row + 8 * half + lane / 4) * kSumsStride + column + tile * kTileColumns +
                  lane % 4 * 2;
      *reinterpret_cast<float2*>(to) =
          make_float2(totals[tile][2 * half], totals[tile][2 * half + 1]);
    }
  }
}

// kWidth: of vectors in which all rows can be moved, 1 or kStoredColumns.
template <int kRows, int kWidth, typename Y>
__device__ inline void StoreBlock(const QuantizedArguments<Y>& a, int first_row, int first_column,
                                  int thread, const float* sums) {
  constexpr int kVectors = kBlockColumns / kWidth;
  for (int i = thread; i < kRows * kVectors; i += kWarps * kWarp) {
    const int row = i / kVectors;
    const int column = i % kVectors * kWidth;
    if (first_row + row >= a.rows || first_column + column >= a.out) continue;
    const auto values = LoadEpilogue<kWidth>(a.epilogue, first_row + row, first_column + column);
    float sum[kWidth];
    LoadOr(0.0f, sums + row * kSumsStride + column, sum);
    Store(a.epilogue, sum, values, first_row + row, first_column + column);
  }
}

template <DType kWeights>
constexpr size_t kBlockBytes =
    std::max(2 * sizeof(Stage<kWeights>), kBlockRows<kWeights>* kSumsStride * sizeof(float));

// Blocks: (rows / kBlockRows, columns / kBlockColumns), rounded up, so that those that run at once
// share columns; 8 warps; kBlockBytes of shared memory.
template <DType kWeights, int kWidth, typename Y>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    LinearQuantizedRowsKernel(QuantizedArguments<Y> a) {
  constexpr int kTiles = kWarpTiles<kWeights>;
  auto* stages = reinterpret_cast<Stage<kWeights>*>(SharedMemory());
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp;
  const int lane = thread % kWarp;
  const int first_row = static_cast<int>(blockIdx.x) * kBlockRows<kWeights>;
  const int first_column = static_cast<int>(blockIdx.y) * kBlockColumns;
  const int row = warp % kRowWarps<kWeights> * kTileRows;
  const int column = warp / kRowWarps<kWeights> * kTiles * kTileColumns;
  float totals[kTiles][4] = {};
  float sums[kTiles][4] = {};
  BeginDependent();
  CopyStage(a, first_row, first_column, 0, thread, stages[0]);
  for (int unit = 0; unit < a.units; ++unit) {
    const bool last = unit + 1 == a.units;
    if (!last) CopyStage(a, first_row, first_column, unit + 1, thread, stages[(unit + 1) % 2]);
    if (last) {
      WaitForCopies<0>();
    } else {
      WaitForCopies<1>();
    }
    __syncthreads();
    MultiplyStage(stages[unit % 2], row, column, lane, sums);
    if ((unit + 1) % ShareUnits(a.units) == 0 || last) {
#pragma unroll
      for (int i = 0; i < kTiles * 4; ++i) {
        totals[i / 4][i % 4] += sums[i / 4][i % 4];
        sums[i / 4][i % 4] = 0;
      }
    }
    __syncthreads();
  }
  float* shared = reinterpret_cast<float*>(SharedMemory());
  GatherSums(totals, row, column, lane, shared);
  __syncthreads();
  StoreBlock<kBlockRows<kWeights>, kWidth>(a, first_row, first_column, thread, shared);
}

}  // namespace

template <DType kWeights, typename Y>
void MultiplyManyRows(Device& device, const QuantizedArguments<Y>& arguments, bool aligned) {
  Launch(device, "linear_quantized_rows",
         aligned ? LinearQuantizedRowsKernel<kWeights, kStoredColumns, Y>
                 : LinearQuantizedRowsKernel<kWeights, 1, Y>,
         {.blocks = dim3(Blocks(arguments.rows, kBlockRows<kWeights>),
                         Blocks(arguments.out, kBlockColumns)),
          .threads = dim3(kWarps * kWarp),
          .shared_bytes = kBlockBytes<kWeights>,
          .dependent = true},
         arguments);
}

template void MultiplyManyRows<DType::kI8>(Device&, const QuantizedArguments<float>&, bool);
template void MultiplyManyRows<DType::kI8>(Device&, const QuantizedArguments<BF16>&, bool);
template void MultiplyManyRows<DType::kI4>(Device&, const QuantizedArguments<float>&, bool);
template void MultiplyManyRows<DType::kI4>(Device&, const QuantizedArguments<BF16>&, bool);

}  // namespace hippodrome::cuda
