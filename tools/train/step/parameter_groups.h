// How the optimizer treats each parameter.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_GROUPS_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_GROUPS_H_

#include <optional>
#include <string_view>

#include "engine/config/bigs_config.h"

namespace hippodrome {

// What no weight decay takes hold of.
struct NoDecay {
  bool biases = false;  // names that end in "bias"
  bool norms = false;   // parameters of LayerNorms
};

// AdamW, see kernels/training_backend.h.
struct OptimizerOptions {
  double rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip = 0;  // the largest norm of all gradients together; 0: any
  // Of the SSM group; by default min(rate, 1e-3) for decoders, and no such group for encoders.
  std::optional<double> ssm_rate;
  bool ssm_decay = false;           // whether the SSM group decays
  std::optional<NoDecay> no_decay;  // default: nothing for decoders, both for encoders
  double ema = 0;                   // decay of the moving average of parameters; 0: none
};

struct ParameterGroup {
  bool ssm = false;    // its rate is SsmRate()
  bool decays = true;  // weight_decay applies
};

// The group of the parameter with the published name `name`. The SSM group holds the step sizes and
// the matrices A and B of state-space models, as in the published training of H3: log_dt,
// inv_A_real, A_imag and B of both SSMs. Encoders have one only if `options` ask for it: theirs
// were trained at the common rate with decay.
ParameterGroup GroupOf(const OptimizerOptions& options, ModelFamily family, std::string_view name);

// The highest rate of the SSM group.
double SsmRate(const OptimizerOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_GROUPS_H_
