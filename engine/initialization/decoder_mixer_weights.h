// Initial parameters of the mixers of a decoder.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_DECODER_MIXER_WEIGHTS_H_
#define HIPPODROME_ENGINE_INITIALIZATION_DECODER_MIXER_WEIGHTS_H_

#include <string>

#include "engine/config/config.h"
#include "engine/initialization/initial_weights.h"
#include "engine/initialization/parameter_list.h"

namespace hippodrome {

// Adds what the mixer's Load() reads under `prefix` ("backbone.layers.0.mixer."). All have
// matrices normal(0, initializer_range) and biases 0. N = d_state, M = N / 2; S = n_ssm.

// H3: shift SSM B = e_0, C uniform in +-1 / sqrt(N); diagonal SSM A = -1/2 + i of the measure, B =
// 1, C complex normal. REQUIRES: an even n_ssm with Measure::kDiag.
void AddH3Mixer(const H3Config& config, const InitializationOptions& options,
                const std::string& prefix, ParameterList& list);

// Attention: out_proj as what writes to the residual stream; inv_freq[j] = 10000^(-2 j /
// rotary_dim).
void AddAttentionMixer(const H3Config& config, const InitializationOptions& options,
                       const std::string& prefix, ParameterList& list);

// S4D: A of kDiagInv, -Re A = 1/2 + 1e-4; C the product of two complex normal numbers, of which
// one, B, is shared by the channels and normalised so that sum_n |B_n / A_n|^2 = 1/2.
void AddS4dMixer(const H3Config& config, const InitializationOptions& options,
                 const std::string& prefix, ParameterList& list);

// S4: A, B and P of HiPPO-LegS in normal plus low-rank form; C complex normal.
void AddS4Mixer(const H3Config& config, const InitializationOptions& options,
                const std::string& prefix, ParameterList& list);

// GSS: Lambda, C and D normal(0, 1).
void AddGssMixer(const H3Config& config, const InitializationOptions& options,
                 const std::string& prefix, ParameterList& list);

// The deviation of matrices that write to the residual stream.
double ResidualDeviation(const H3Config& config, const InitializationOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_DECODER_MIXER_WEIGHTS_H_
