// The kernel of embedding.h: a block adds the rows of one token.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_CUH_

#include "kernels/cuda/base/row_vector.cuh"

namespace hippodrome::cuda {

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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_CUH_
