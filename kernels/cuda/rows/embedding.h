// Rows of the embedding tables.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_H_

#include "kernels/cuda/gemm/packed_weights.h"

namespace hippodrome::cuda {

// The contract of Backend::Embedding, with y and the added tables f32.
void Embedding(Device& device, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_EMBEDDING_H_
