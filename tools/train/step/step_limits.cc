#include "tools/train/step/step_limits.h"

#include "tools/limits/flops.h"

namespace hippodrome {
namespace {

// The backward has two products where the forward has one: for the input and for the weights.
constexpr double kPasses = 3;

double OptimizerBytes(const StepSize& size) {
  constexpr double kTransfers = 7;
  return kTransfers * sizeof(float) * static_cast<double>(size.parameters);
}

}  // namespace

Cost TrainingStepCost(const H3Config& config, const StepSize& size) {
  // A prefill has one row of logits per sequence.
  const Cost prefill = PrefillCost(config, size.sequences, size.length, DType::kF32);
  const double row = 2 * static_cast<double>(config.padded_vocab_size * config.d_model);
  const double more_rows = static_cast<double>(size.answers - size.sequences);
  return {.flops = kPasses * (prefill.flops + more_rows * row), .bytes = OptimizerBytes(size)};
}

Cost TrainingStepCost(const BigsConfig& config, const StepSize& size) {
  // With the head's answer for one row of each input.
  const Cost encode = EncodeCost(config, size.sequences, size.length, DType::kF32);
  const EncoderFlops input = CountFlops(config, size.length);
  const bool attention = config.routing == EncoderRouting::kAttention;
  const double layers = input.matrices + (attention ? input.mixing : 0);
  const double row = encode.flops / static_cast<double>(size.sequences) - layers;
  const double more_rows = static_cast<double>(size.answers - size.sequences);
  return {.flops = kPasses * (encode.flops + more_rows * row), .bytes = OptimizerBytes(size)};
}

double MostTokensPerSecond(const Cost& cost, const StepSize& size, DType weights,
                           const Ceilings& ceilings) {
  const auto tokens = static_cast<double>(size.sequences * size.length);
  return tokens / LeastSeconds(cost, weights, ceilings);
}

}  // namespace hippodrome
