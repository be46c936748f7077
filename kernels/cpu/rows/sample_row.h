// Vector loops over one row of logits, for Sample.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_ROW_H_
#define HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_ROW_H_

#include <cstdint>
#include <vector>

namespace hippodrome::cpu {

// The largest of n values, NaN apart; minus infinity if there is none.
float LargestLogit(const float* logits, int64_t n);

// weights_i = exp((logits_i - max) / temperature), 1 for a logit that equals max, 0 for NaN.
// Returns their sum. REQUIRES: max = LargestLogit(...) > -inf, temperature > 0.
double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights);

// The sum of the weights of `floor` and more.
double SumAtLeast(const float* weights, int64_t n, float floor);

// The indices of the values in [floor, ceiling], ascending; NaN is none of them.
std::vector<int32_t> FindBetween(const float* values, int64_t n, float floor, float ceiling);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_SAMPLE_ROW_H_
