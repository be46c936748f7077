// A block adds the rows of one token.
#include "kernels/cuda/rows/embedding.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"

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

template <typename W>
struct EmbeddingArguments {
  EmbeddingRows<W> tokens;
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

// One block per row. With kWidth 4, d is a multiple of 4 and all rows are aligned for vectors of 4.
template <typename W, int kWidth>
__global__ void __launch_bounds__(256) EmbeddingKernel(EmbeddingArguments<W> a) {
  const W* token = a.tokens.Row(blockIdx.x);
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

template <typename W>
void Gather(Device& device, const PackedWeights& table, const Tensor& ids, const AddedRows& types,
            const AddedRows& positions, const Tensor& y) {
  const EmbeddingArguments<W> arguments = {
      .tokens = {static_cast<const W*>(table.data()), table.in(), DeviceRow<int32_t>(ids, 0)},
      .types = RowsOf(types),
      .positions = RowsOf(positions),
      .d = static_cast<int>(table.in()),
      .y = DeviceRow<float>(y, 0),
      .y_stride = y.stride};
  const bool aligned =
      table.in() % 4 == 0 && RowsAreAligned(y, 4) && IsAligned(types) && IsAligned(positions);
  const int64_t vectors = aligned ? table.in() / 4 : table.in();
  const int64_t warps = (std::min(vectors, kMaxThreads) + kWarp - 1) / kWarp;
  Launch(device, "embedding", aligned ? EmbeddingKernel<W, 4> : EmbeddingKernel<W, 1>,
         {.blocks = dim3(static_cast<unsigned>(y.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
         arguments);
}

}  // namespace

void Embedding(Device& device, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y) {
  assert(y.cols == table.in() && ids.cols == y.rows);
  if (y.rows == 0) return;
  if (table.dtype() == DType::kBF16) {
    Gather<BF16>(device, table, ids, types, positions, y);
  } else {
    Gather<float>(device, table, ids, types, positions, y);
  }
}

}  // namespace hippodrome::cuda
