// Rows of the embedding tables.
#ifndef HIPPODROME_KERNELS_CUDA_EMBEDDING_H_
#define HIPPODROME_KERNELS_CUDA_EMBEDDING_H_

#include "kernels/cuda/packed_weights.h"

namespace hippodrome::cuda {

// The contract of Backend::Embedding, with y and position_table f32. A negative position is that of
// an inert row and adds nothing.
void Embedding(Device& device, const PackedWeights& table, Tensor position_table, Tensor ids,
               Tensor positions, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_EMBEDDING_H_
