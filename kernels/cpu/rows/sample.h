// Choosing the next tokens, and how likely tokens were.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_
#define HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_

#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// The contract of Backend::Sample. Tokens are drawn along their descending order.
void Sample(ThreadPool& pool, Tensor logits, int64_t vocab, std::span<const SamplingRow> rows,
            const LogitAdjustments& adjustments, Tensor tokens);

// The contract of Backend::LogProbabilities.
void LogProbabilities(ThreadPool& pool, Tensor logits, int64_t vocab, Tensor tokens,
                      Tensor likeliest, Tensor log_probabilities);

// log sum_i exp(values_i), summed in double; values must have a finite largest.
double LogSumExp(std::span<const float> values);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_H_
