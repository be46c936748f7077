// The kernel of embedding.h: a block gathers a row.
#ifndef HIPPODROME_KERNELS_CUDA_EMBEDDING_CUH_
#define HIPPODROME_KERNELS_CUDA_EMBEDDING_CUH_

#include "kernels/cuda/row_vector.cuh"

namespace hippodrome::cuda {

template <typename W>
struct EmbeddingArguments {
  const W* table;  // rows of d
  int d;
  const float* position_table;  // rows of position_stride, or null
  int64_t position_stride;
  const int32_t* ids;
  const int32_t* positions;
  float* y;  // rows of y_stride
  int64_t y_stride;
};

// One block per row. With kWidth 4, d is a multiple of 4 and all rows are aligned for vectors of 4.
template <typename W, int kWidth>
__global__ void __launch_bounds__(256) EmbeddingKernel(EmbeddingArguments<W> a) {
  const W* token = a.table + int64_t{a.ids[blockIdx.x]} * a.d;
  const int position = a.position_table == nullptr ? -1 : a.positions[blockIdx.x];
  const float* place = position < 0 ? nullptr : a.position_table + position * a.position_stride;
  float* y = a.y + int64_t{blockIdx.x} * a.y_stride;
  for (int column = static_cast<int>(threadIdx.x) * kWidth; column < a.d;
       column += static_cast<int>(blockDim.x) * kWidth) {
    const auto from = LoadVector<W, kWidth>(token + column);
    RowVector<float, kWidth> sum;
    for (int i = 0; i < kWidth; ++i) sum.values[i] = Widen(from.values[i]);
    if (place != nullptr) {
      const auto added = LoadVector<float, kWidth>(place + column);
      for (int i = 0; i < kWidth; ++i) sum.values[i] += added.values[i];
    }
    StoreVector(sum, y + column);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_EMBEDDING_CUH_
