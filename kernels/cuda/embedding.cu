#include "kernels/cuda/embedding.h"

#include <algorithm>

#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

constexpr int64_t kMaxThreads = 256;

template <typename W>
void Gather(Device& device, const PackedWeights& table, const Tensor& position_table,
            const Tensor& ids, const Tensor& positions, const Tensor& y) {
  const bool has_positions = position_table.data != nullptr;
  const EmbeddingArguments<W> arguments = {
      .table = static_cast<const W*>(table.data()),
      .d = static_cast<int>(table.in()),
      .position_table = has_positions ? DeviceRow<float>(position_table, 0) : nullptr,
      .position_stride = position_table.stride,
      .ids = DeviceRow<int32_t>(ids, 0),
      .positions = has_positions ? DeviceRow<int32_t>(positions, 0) : nullptr,
      .y = DeviceRow<float>(y, 0),
      .y_stride = y.stride};
  const bool aligned = table.in() % 4 == 0 && RowsAreAligned(y, 4) &&
                       (!has_positions || RowsAreAligned(position_table, 4));
  const int64_t vectors = aligned ? table.in() / 4 : table.in();
  const int64_t warps = (std::min(vectors, kMaxThreads) + kWarp - 1) / kWarp;
  Launch(device, "embedding", aligned ? EmbeddingKernel<W, 4> : EmbeddingKernel<W, 1>,
         {.blocks = dim3(static_cast<unsigned>(y.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
         arguments);
}

}  // namespace

void Embedding(Device& device, const PackedWeights& table, Tensor position_table, Tensor ids,
               Tensor positions, Tensor y) {
  assert(y.cols == table.in() && ids.cols == y.rows);
  if (y.rows == 0) return;
  if (table.dtype() == DType::kBF16) {
    Gather<BF16>(device, table, position_table, ids, positions, y);
  } else {
    Gather<float>(device, table, position_table, ids, positions, y);
  }
}

}  // namespace hippodrome::cuda
