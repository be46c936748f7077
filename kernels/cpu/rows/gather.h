// Rows by index: embeddings, rows picked out of a matrix, and sums of rows.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_GATHER_H_
#define HIPPODROME_KERNELS_CPU_ROWS_GATHER_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of Backend::Embedding.
void Embedding(ThreadPool& pool, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y);

// The contract of Backend::GatherRows.
void GatherRows(ThreadPool& pool, Tensor x, Tensor rows, Tensor y);

// The contract of TrainingBackend::ScatterRows; rows of one index are added in their order.
void ScatterRows(ThreadPool& pool, Tensor dy, Tensor indices, Tensor dtable);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_GATHER_H_
