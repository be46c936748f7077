// Choosing the next tokens.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_
#define HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_

#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// The contract of Backend::Sample. A NaN counts as the least likely logit; a row without any number
// above minus infinity gives token 0. Tokens are drawn along their descending order.
void Sample(ThreadPool& pool, Tensor logits, int64_t vocab, std::span<const SamplingRow> rows,
            Tensor tokens);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_
