// Operations and bytes of a model, from which the limits of a machine follow.
#ifndef HIPPODROME_TOOLS_LIMITS_MODEL_COST_H_
#define HIPPODROME_TOOLS_LIMITS_MODEL_COST_H_

#include <cstdint>

#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/limits/machine.h"

namespace hippodrome {

struct Cost {
  double flops = 0;  // 2 per multiply-add of a matrix product or attention
  double bytes = 0;  // that must be read or written at least once
};

// `tokens` prompt tokens of each of `batch` sequences, logits of the last ones: matrix products,
// causal attention; every weight once.
Cost PrefillCost(const H3Config& config, int64_t batch, int64_t tokens, DType weights);

// One step of `batch` sequences with `context` tokens each: every weight and every SSM constant
// once, of each sequence's recurrent state what a step moves, its key/value rows read.
Cost DecodeCost(const H3Config& config, int64_t batch, int64_t context, DType weights,
                int64_t state_bytes);

// `tokens` tokens of each of `batch` inputs of an encoder, with the head's answer for one token or
// for the whole of each: matrix products, attention; every weight once. Convolutions are left out:
// how many operations they need depends on the algorithm, at least about 1 % of the matrix products
// (BiGS, Table 6).
Cost EncodeCost(const BigsConfig& config, int64_t batch, int64_t tokens, DType weights);

// The time that arithmetic or memory needs at least, as if they overlapped perfectly.
double LeastSeconds(const Cost& cost, DType weights, const Ceilings& ceilings);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_MODEL_COST_H_
