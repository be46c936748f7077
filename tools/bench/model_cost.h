// Operations and bytes of a Hybrid H3, from which the limits of a machine follow.
#ifndef HIPPODROME_TOOLS_BENCH_MODEL_COST_H_
#define HIPPODROME_TOOLS_BENCH_MODEL_COST_H_

#include <cstdint>

#include "engine/config.h"
#include "kernels/dtype.h"

namespace hippodrome {

struct Cost {
  double flops = 0;  // 2 per multiply-add of a matrix product or attention
  double bytes = 0;  // that must be read or written at least once
};

// `tokens` prompt tokens of one sequence, logits of the last one: matrix products, causal
// attention; every weight once.
Cost PrefillCost(const H3Config& config, int64_t tokens, DType weights);

// One step of `batch` sequences with `context` tokens each: every weight and every SSM constant
// once, each sequence's recurrent state read and written, its key/value rows read.
Cost DecodeCost(const H3Config& config, int64_t batch, int64_t context, DType weights,
                int64_t state_bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_MODEL_COST_H_
