// Products of integers on tensor cores, of few rows and of many: the same sums in the same order.
//
// The rows of x come rounded into units of the order of those of W. A warp multiplies tiles of 16
// rows by 8 columns: lane 4 g + t reads a quarter of the unit of column g of a tile, and of rows g
// and g + 8. The depth has kShares shares of adjacent units, whose sums are added in their order.
// So the order of every sum follows from the shape of W alone, and rows of x never meet.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_QUANTIZED_TILE_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_QUANTIZED_TILE_CUH_

#include "kernels/cuda/base/device.h"
#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/gemm/linear_epilogue.cuh"
#include "kernels/cuda/gemm/packed_weights.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cuda {

inline constexpr int kTileColumns = 8;
inline constexpr int kTileRows = 16;
inline constexpr int kWarps = 8;
inline constexpr int kShares = kWarps;

// Groups of a unit.
template <DType kWeights>
constexpr int kGroups = kUnitInputs / static_cast<int>(QuantizedGroup(kWeights));
// Bytes of a unit of W.
template <DType kWeights>
constexpr int kUnitBytes = kWeights == DType::kI8 ? kUnitInputs : kUnitInputs / 2;

__host__ __device__ inline int ShareUnits(int units) { return (units + kShares - 1) / kShares; }

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

// What a lane has of a unit; of W in kI4 the first four words, each of a group.
struct Quarter {
  uint32_t words[8];
};

// Of four integers of 4 bits, stored 8 higher in the upper halves of bytes, 16 times their value.
__device__ inline uint32_t SignedBytes(uint32_t halves) {
  return (halves & 0xf0f0f0f0u) ^ 0x80808080u;
}

// Sums begin with the bits of 1.5 * 2^23. As long as they differ from that by at most 2^22, their
// bits are those of 1.5 * 2^23 more than the sum: conversions of integers have a quarter of the
// rate of additions.
constexpr float kStart = 0x1.8p23f;
constexpr int32_t kStartBits = 0x4b400000;
static_assert(127 * 127 * kInt8Group <= 1 << 22 && 127 * 16 * 8 * kInt4Group <= 1 << 22);

// sums += the groups of a unit, of rows g and g + 8 by columns 2t and 2t + 1.
template <DType kWeights>
__device__ inline void MultiplyUnit(const Quarter (&x)[2], const Quarter& w,
                                    const float (&x_scales)[kGroups<kWeights>][2],
                                    const RowVector<BF16, 2> (&w_scales)[kGroups<kWeights>],
                                    float (&sums)[4]) {
  constexpr float kUnit = kWeights == DType::kI8 ? 1.0f : 1.0f / 16;
  constexpr int kSteps = kWeights == DType::kI8 ? 4 : 1;  // of 32 inputs, of a group
#pragma unroll
  for (int group = 0; group < kGroups<kWeights>; ++group) {
    int32_t dot[4] = {kStartBits, kStartBits, kStartBits, kStartBits};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = 2 * (group * kSteps + step);
      uint32_t b[2];
      if constexpr (kWeights == DType::kI8) {
        b[0] = w.words[i];
        b[1] = w.words[i + 1];
      } else {
        b[0] = SignedBytes(w.words[group] << 4);
        b[1] = SignedBytes(w.words[group]);
      }
      MmaS8(dot, {x[0].words[i], x[1].words[i], x[0].words[i + 1], x[1].words[i + 1]}, b);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float product = __int_as_float(dot[i]) - kStart;
      sums[i] = fmaf(product * (x_scales[group][i / 2] * kUnit),
                     Widen(w_scales[group].values[i % 2]), sums[i]);
    }
  }
}

inline unsigned Blocks(int64_t size, int64_t per_block) {
  return static_cast<unsigned>((size + per_block - 1) / per_block);
}

// Blocks of many rows. Of 4 bits, as many bytes of x and W meet in them as of 8 bits; twice the
// rows would need registers that are not there.
template <DType kWeights>
constexpr int kBlockRows = kWeights == DType::kI8 ? 128 : 64;
inline constexpr int kBlockColumns = 64;
inline constexpr int kFewRows = 64;       // and up to so many in others
inline constexpr int kStoredColumns = 4;  // by a thread, together

// y = epilogue(x W^T) in such blocks. kI8 or kI4; float or BF16. aligned: the rows of y and of the
// tensors of the epilogue can be moved in vectors of kStoredColumns.
template <DType kWeights, typename Y>
void MultiplyManyRows(Device& device, const QuantizedArguments<Y>& arguments, bool aligned);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_QUANTIZED_TILE_CUH_
