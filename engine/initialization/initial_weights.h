// The parameters of a model before training, distributed as in the published code.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_INITIAL_WEIGHTS_H_
#define HIPPODROME_ENGINE_INITIALIZATION_INITIAL_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"

namespace hippodrome {

struct InitialParameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
  bool trained = true;  // false: a constant of the model (inv_freq of rotary attention)
};

// Im A of mode n of an H3 layer's N / 2 modes; Re A = -1/2.
enum class Measure : uint8_t {
  kDiagLin,   // pi n
  kDiagInv,   // N / pi (N / (2 n + 1) - 1)
  kDiag,      // the first half of the rows as kDiagInv, the others as kDiagLin
  kDiagLegs,  // of the eigenvalues of HiPPO-LegS
};

// Im A of mode n of an encoder's N modes; Re A = -1/2.
enum class EncoderScaling : uint8_t {
  kHippo,  // all eigenvalues of the normal part of HiPPO-LegS, ascending
  kLin,    // pi n
  kInv,    // N / pi (N / (2 n + 1) - 1)
};

struct InitializationOptions {
  uint64_t seed = 0;
  double initializer_range = 0.02;                  // deviation of matrices
  Measure measure = Measure::kDiagLin;              // of H3 mixers
  EncoderScaling scaling = EncoderScaling::kHippo;  // of encoders
};

// All that HybridH3::Load() and Bigs::Load() read, in the order of the model; a tensor's values
// depend on the seed and its name alone.
//
// A decoder: matrices and tables normal(0, initializer_range), of which out_proj, fc2 and the gated
// projection of S4, which write to the residual stream, 1 / sqrt(2 n_layer) times that; biases 0;
// skips D normal(0, 1); log dt uniform between those of 0.001 and 0.1. The mixers: see
// h3_weights.cc. Errors: kInvalidArgument for H3 with kDiag and an odd n_ssm.
absl::StatusOr<std::vector<InitialParameter>> InitialWeights(const H3Config& config,
                                                             const InitializationOptions& options);

// An encoder, as in the published JAX code, in which the models were trained: matrices and tables
// normal(0, initializer_range); decoders and classifiers truncated normal with deviation
// 1 / sqrt(d), which is that code's default; biases 0; C normal with variance 1/2, D = 1, log dt
// uniform between those of 0.01 and 1.
std::vector<InitialParameter> InitialWeights(const BigsConfig& config,
                                             const InitializationOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_INITIAL_WEIGHTS_H_
