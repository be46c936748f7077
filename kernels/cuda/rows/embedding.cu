#include "kernels/cuda/rows/embedding.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/rows/embedding.cuh"

namespace hippodrome::cuda {
namespace {

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
