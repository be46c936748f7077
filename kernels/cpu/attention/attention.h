// Causal multi-head attention over paged keys and values.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_ATTENTION_H_

#include "kernels/backend.h"
#include "kernels/cpu/attention/key_value_pages.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// The contract of Backend::AttentionSequence. A row of the result is the same bit for bit however a
// sequence is cut into calls.
void AttentionSequence(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                       PagedRows& pages, Tensor page_tables, const SequenceParts& parts, Tensor o);

// The contract of Backend::AttentionStep.
void AttentionStep(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                   PagedRows& pages, Tensor page_tables, Tensor positions, Tensor o);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_ATTENTION_H_
