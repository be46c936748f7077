// A block adds the rows of one token.
#include "kernels/cuda/rows/embedding.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cuda {
namespace {

// A table and the rows of it that tokens have.
template <typename W>
struct EmbeddingRows {
  const W* table = nullptr;  // rows of `stride`, or null
  int64_t stride = 0;
  const int32_t* indices = nullptr;  // -1: none

  __device__ const W* Row(unsigned token) const {
    if (table == nullptr || indices[token] < 0) return nullptr;
    return table + indices[token] * stride;
  }
};

// Integers with the scales of their groups, see PackedWeights.
struct QuantizedRow {
  const int8_t* integers;  // or null
  const BF16* scales;      // of the groups, scale_stride apart
  int64_t scale_stride;
};

struct QuantizedRows {
  const int8_t* table;  // rows of `stride`
  int64_t stride;
  const BF16* scales;
  int64_t scale_stride;
  const int32_t* indices;  // -1: none

  __device__ QuantizedRow Row(unsigned token) const {
    const int32_t index = indices[token];
    if (index < 0) return {};
    return {table + index * stride, scales + index, scale_stride};
  }
};

template <typename Rows>
struct EmbeddingArguments {
  Rows tokens;
  EmbeddingRows<float> types;
  EmbeddingRows<float> positions;
  int d;
  float* y;  // rows of y_stride
  int64_t y_stride;
};

// sum += row[column ...], nothing for null.
template <int kWidth, typename W>
__device__ inline void AddVector(const W* row, int column, RowVector<float, kWidth>& sum) {
  if (row == nullptr) return;
  const auto from = LoadVector<W, kWidth>(row + column);
  for (int i = 0; i < kWidth; ++i) sum.values[i] += Widen(from.values[i]);
}

template <int kWidth>
__device__ inline void AddVector(const QuantizedRow& row, int column,
                                 RowVector<float, kWidth>& sum) {
  if (row.integers == nullptr) return;
  const auto from = LoadVector<int8_t, kWidth>(row.integers + column);
  const float scale = Widen(row.scales[column / kInt8Group * row.scale_stride]);
  for (int i = 0; i < kWidth; ++i) sum.values[i] += static_cast<float>(from.values[i]) * scale;
}

// One block per row. With kWidth 4, d is a multiple of 4 and all rows are aligned for vectors of 4.
template <typename Rows, int kWidth>
__global__ void __launch_bounds__(256) EmbeddingKernel(EmbeddingArguments<Rows> a) {
  BeginDependent();
  const auto token = a.tokens.Row(blockIdx.x);
  const float* type = a.types.Row(blockIdx.x);
  const float* position = a.positions.Row(blockIdx.x);
  float* y = a.y + int64_t{blockIdx.x} * a.y_stride;
  for (int column = static_cast<int>(threadIdx.x) * kWidth; column < a.d;
       column += static_cast<int>(blockDim.x) * kWidth) {
    RowVector<float, kWidth> sum = {};
    AddVector(token, column, sum);
    AddVector(type, column, sum);
    AddVector(position, column, sum);
    StoreVector(sum, y + column);
  }
}

constexpr int64_t kMaxThreads = 256;

EmbeddingRows<float> RowsOf(const AddedRows& added) {
  if (added.table.data == nullptr) return {};
  return {DeviceRow<float>(added.table, 0), added.table.stride,
          DeviceRow<int32_t>(added.indices, 0)};
}

bool IsAligned(const AddedRows& added) {
  return added.table.data == nullptr || RowsAreAligned(added.table, 4);
}

template <typename Rows>
void Gather(Device& device, const Rows& tokens, const AddedRows& types, const AddedRows& positions,
            const Tensor& y) {
  const EmbeddingArguments<Rows> arguments = {.tokens = tokens,
                                              .types = RowsOf(types),
                                              .positions = RowsOf(positions),
                                              .d = static_cast<int>(y.cols),
                                              .y = DeviceRow<float>(y, 0),
                                              .y_stride = y.stride};
  const bool aligned = RowsAreAligned(y, 4) && IsAligned(types) && IsAligned(positions);
  const int64_t vectors = aligned ? y.cols / 4 : y.cols;
  const int64_t warps = (std::min(vectors, kMaxThreads) + kWarp - 1) / kWarp;
  Launch(device, "embedding", aligned ? EmbeddingKernel<Rows, 4> : EmbeddingKernel<Rows, 1>,
         {.blocks = dim3(static_cast<unsigned>(y.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp)),
          .dependent = true},
         arguments);
}

}  // namespace

void Embedding(Device& device, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y) {
  assert(y.cols == table.in() && ids.cols == y.rows);
  assert(table.dtype() != DType::kI4);
  if (y.rows == 0) return;
  const auto* indices = DeviceRow<int32_t>(ids, 0);
  const int64_t d = table.in();
  switch (table.dtype()) {
    case DType::kI8:
      return Gather(device,
                    QuantizedRows{static_cast<const int8_t*>(table.data()), table.row_bytes(),
                                  table.scales(), table.scale_columns(), indices},
                    types, positions, y);
    case DType::kBF16:
      return Gather(device, EmbeddingRows<BF16>{static_cast<const BF16*>(table.data()), d, indices},
                    types, positions, y);
    default:
      return Gather(device,
                    EmbeddingRows<float>{static_cast<const float*>(table.data()), d, indices},
                    types, positions, y);
  }
}

}  // namespace hippodrome::cuda
