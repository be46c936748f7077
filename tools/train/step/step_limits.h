// What a training step costs, and how fast a machine could make it at best.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_STEP_LIMITS_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_STEP_LIMITS_H_

#include <cstdint>

#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {

// What one step trains on.
struct StepSize {
  int64_t sequences = 0;
  int64_t length = 0;      // tokens of each
  int64_t answers = 0;     // rows of the head in all: masked tokens, sequences, tokens
  int64_t parameters = 0;  // that the optimizer changes
};

// Matrix products and attention of the forward and, twice that, of the backward pass; AdamW reads
// weight, gradient and both moments and writes all but the gradient, in f32. Convolutions,
// LayerNorms and activations are left out, and so is what `recompute` computes twice: the limit is
// of the useful work.
Cost TrainingStepCost(const H3Config& config, const StepSize& size);
Cost TrainingStepCost(const BigsConfig& config, const StepSize& size);

// Tokens per second that the machine cannot exceed. weights: the precision of products.
double MostTokensPerSecond(const Cost& cost, const StepSize& size, DType weights,
                           const Ceilings& ceilings);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_STEP_LIMITS_H_
