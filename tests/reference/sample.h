// Choosing a token, step by step.
#ifndef HIPPODROME_TESTS_REFERENCE_SAMPLE_H_
#define HIPPODROME_TESTS_REFERENCE_SAMPLE_H_

#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

// Backend::Sample() of one row. logits: [1, >= vocab].
int32_t SampleOne(Tensor logits, int64_t vocab, const SamplingParameters& parameters,
                  int64_t position);

// The row after `adjustments`: kI32 [n, kAdjustmentColumns].
std::vector<double> Adjusted(Tensor logits, Tensor adjustments);

// Backend::LogProbabilities().
void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                      Tensor log_probabilities);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_SAMPLE_H_
