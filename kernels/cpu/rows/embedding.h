// Token, type and position embeddings.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_EMBEDDING_H_
#define HIPPODROME_KERNELS_CPU_ROWS_EMBEDDING_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of Backend::Embedding.
void Embedding(ThreadPool& pool, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_EMBEDDING_H_
