#include <cmath>
#include <string>

#include "engine/base/status.h"
#include "engine/initialization/initial_weights.h"
#include "engine/initialization/parameter_list.h"
#include "engine/initialization/state_spectrum.h"

namespace hippodrome {
namespace {

const double kLogShortestStep = std::log(0.001);
const double kLogLongestStep = std::log(0.1);

void AddLogSteps(const std::string& name, const ParameterList::Shape& shape, ParameterList& list) {
  list.Uniform(name, shape, kLogShortestStep, kLogLongestStep);
}

// Im A of the rows [S, M] of an H3 layer.
std::vector<float> H3Spectrum(const H3Config& config, Measure measure) {
  std::vector<float> rows;
  for (int64_t s = 0; s < config.n_ssm; ++s) {
    const Measure half = 2 * s < config.n_ssm ? Measure::kDiagInv : Measure::kDiagLin;
    const std::vector<float> row =
        ImaginaryParts(measure == Measure::kDiag ? half : measure, config.d_state);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<float> FirstUnitVector(int64_t size) {
  std::vector<float> e(size);
  e[0] = 1;
  return e;
}

// The deviation of matrices that write to the residual stream.
double ResidualDeviation(const H3Config& config, const InitializationOptions& options) {
  return options.initializer_range / std::sqrt(2.0 * static_cast<double>(config.n_layer));
}

// ---- Mixers
// -------------------------------------------------------------------------------------- Each adds
// what the mixer's Load() reads under `prefix` ("backbone.layers.0.mixer."). All have matrices
// normal(0, initializer_range) and biases 0. N = d_state, M = N / 2; S = n_ssm.

// H3: shift SSM B = e_0, C uniform in +-1 / sqrt(N); diagonal SSM A = -1/2 + i of the measure, B =
// 1, C complex normal. REQUIRES: an even n_ssm with Measure::kDiag.
void AddH3Mixer(const H3Config& config, const InitializationOptions& options,
                const std::string& prefix, ParameterList& list) {
  const int64_t d = config.d_model;
  const int64_t n = config.d_state;
  const int64_t m = n / 2;
  const int64_t heads = config.heads();
  const int64_t s = config.n_ssm;
  for (const char* name : {"q_proj.", "k_proj.", "v_proj.", "output_linear."}) {
    list.Linear(prefix + name, d, d, options.initializer_range);
  }
  const std::string shift = prefix + "ssm_k_kernel.kernel.";
  const double bound = 1 / std::sqrt(static_cast<double>(n));
  list.Repeated(shift + "B", {d, n}, FirstUnitVector(n));
  list.Uniform(shift + "C", {1, d, n}, -bound, bound);
  list.Normal(prefix + "ssm_k_D", {d}, 1);
  const std::string kernel = prefix + "kernel.kernel.";
  list.Normal(prefix + "D", {heads}, 1);
  AddLogSteps(kernel + "log_dt", {heads}, list);
  list.Constant(kernel + "inv_A_real", {s, m}, std::log(0.5f));
  list.Values(kernel + "A_imag", {s, m}, H3Spectrum(config, options.measure));
  list.Repeated(kernel + "B", {s, m, 2}, {1, 0});
  list.Normal(kernel + "C", {1, heads, m, 2}, kComplexNormal);
}

// Linear attention: out_proj as what writes to the residual stream.
void AddLinearAttentionMixer(const H3Config& config, const InitializationOptions& options,
                             const std::string& prefix, ParameterList& list) {
  const int64_t d = config.d_model;
  list.Linear(prefix + "Wqkv.", 3 * d, d, options.initializer_range);
  list.Linear(prefix + "out_proj.", d, d, ResidualDeviation(config, options));
}

// Attention: the same; inv_freq[j] = 10000^(-2 j / rotary_dim).
void AddAttentionMixer(const H3Config& config, const InitializationOptions& options,
                       const std::string& prefix, ParameterList& list) {
  AddLinearAttentionMixer(config, options, prefix, list);
  if (config.rotary_dim == 0) return;
  std::vector<float> inv_freq(config.rotary_dim / 2);
  for (size_t j = 0; j < inv_freq.size(); ++j) {
    const double turns = 2 * static_cast<double>(j) / static_cast<double>(config.rotary_dim);
    inv_freq[j] = static_cast<float>(std::pow(10000.0, -turns));
  }
  list.Untrained(prefix + "rotary_emb.inv_freq", {config.rotary_dim / 2}, inv_freq);
}

// S4D: A of kDiagInv, -Re A = 1/2 + 1e-4; C the product of two complex normal numbers, of which
// one, B, is shared by the channels and normalised so that sum_n |B_n / A_n|^2 = 1/2.
void AddS4dMixer(const H3Config& config, const InitializationOptions& options,
                 const std::string& prefix, ParameterList& list) {
  const int64_t d = config.d_model;
  const int64_t m = config.d_state / 2;
  const int64_t s = config.n_ssm;
  const std::string kernel = prefix + "kernel.kernel.";
  const std::vector<float> a_imag = ImaginaryParts(Measure::kDiagInv, config.d_state);
  list.Normal(prefix + "D", {1, d}, 1);
  AddLogSteps(kernel + "log_dt", {d}, list);
  list.Constant(kernel + "log_w_real", {s, m}, std::log(0.5f + 1e-4f));
  list.Repeated(kernel + "w_imag", {s, m}, a_imag);
  list.Values(kernel + "C", {1, d, m, 2}, FoldedOutputs(a_imag, s, d, list.Stream(kernel + "C")));
  list.Linear(prefix + "output_linear.", d, d, options.initializer_range);
}

// S4: A, B and P of HiPPO-LegS in normal plus low-rank form; C complex normal.
void AddS4Mixer(const H3Config& config, const InitializationOptions& options,
                const std::string& prefix, ParameterList& list) {
  const int64_t d = config.d_model;
  const int64_t m = config.d_state / 2;
  const int64_t s = config.n_ssm;
  const std::string kernel = prefix + "layer.kernel.";
  const NplrRow row = HippoLegsRow(config.d_state);
  list.Normal(prefix + "layer.D", {1, d}, 1);
  AddLogSteps(kernel + "inv_dt", {d, 1}, list);
  list.Repeated(kernel + "A_real", {s, m}, row.a_real);
  list.Repeated(kernel + "A_imag", {s, m}, row.a_imag);
  list.Repeated(kernel + "B", {1, s, m, 2}, row.b);
  list.Repeated(kernel + "P", {1, s, m, 2}, row.p);
  list.Normal(kernel + "C", {1, d, m, 2}, kComplexNormal);
  list.Linear(prefix + "output_linear.0.", 2 * d, d, ResidualDeviation(config, options));
}

// GSS: Lambda, C and D normal(0, 1).
void AddGssMixer(const H3Config& config, const InitializationOptions& options,
                 const std::string& prefix, ParameterList& list) {
  const int64_t d = config.d_model;
  const int64_t n = config.d_state;
  const int64_t e = config.gss_channels;
  const int64_t gate = config.gss_expansion * d;
  const double deviation = options.initializer_range;
  list.Normal(prefix + "to_u.0.weight", {gate, d}, deviation);
  list.Normal(prefix + "to_v.0.weight", {e, d}, deviation);
  list.Norm(prefix + "dss.norm.", e);
  list.Normal(prefix + "dss.Lambda_real", {n}, 1);
  list.Normal(prefix + "dss.Lambda_imag", {n}, 1);
  list.Normal(prefix + "dss.C", {e, n, 2}, 1);
  list.Normal(prefix + "dss.param_D", {e}, 1);
  list.Normal(prefix + "to_gate.weight", {gate, e}, deviation);
  list.Linear(prefix + "to_out.", d, gate, deviation);
}

// ---- The model
// -----------------------------------------------------------------------------------

void AddMixer(const H3Config& config, const InitializationOptions& options, int64_t layer,
              const std::string& prefix, ParameterList& list) {
  if (config.IsAttention(layer)) return AddAttentionMixer(config, options, prefix, list);
  switch (config.mixer) {
    case DecoderMixer::kH3:
      return AddH3Mixer(config, options, prefix, list);
    case DecoderMixer::kS4d:
      return AddS4dMixer(config, options, prefix, list);
    case DecoderMixer::kS4:
      return AddS4Mixer(config, options, prefix, list);
    case DecoderMixer::kGss:
      return AddGssMixer(config, options, prefix, list);
    case DecoderMixer::kLinearAttention:
      return AddLinearAttentionMixer(config, options, prefix, list);
  }
}

void AddBlock(const H3Config& config, const InitializationOptions& options, int64_t layer,
              ParameterList& list) {
  const std::string prefix = "backbone.layers." + std::to_string(layer) + ".";
  list.Norm(prefix + "norm1.", config.d_model);
  list.Norm(prefix + "norm2.", config.d_model);
  AddMixer(config, options, layer, prefix + "mixer.", list);
  list.Linear(prefix + "mlp.fc1.", config.d_inner, config.d_model, options.initializer_range);
  list.Linear(prefix + "mlp.fc2.", config.d_model, config.d_inner,
              ResidualDeviation(config, options));
}

}  // namespace

absl::StatusOr<std::vector<InitialParameter>> InitialWeights(const H3Config& config,
                                                             const InitializationOptions& options) {
  if (config.mixer == DecoderMixer::kH3 && options.measure == Measure::kDiag &&
      config.n_ssm % 2 != 0) {
    return InvalidArgument("ssm_cfg.n_ssm is " + std::to_string(config.n_ssm) +
                           ", expected an even number with measure \"diag\", whose halves differ");
  }
  ParameterList list(options.seed);
  const std::string embeddings = "backbone.embeddings.";
  list.Normal(embeddings + "word_embeddings.weight", {config.padded_vocab_size, config.d_model},
              options.initializer_range);
  if (config.max_position_embeddings > 0) {
    list.Normal(embeddings + "position_embeddings.weight",
                {config.max_position_embeddings, config.d_model}, options.initializer_range);
  }
  for (int64_t layer = 0; layer < config.n_layer; ++layer) AddBlock(config, options, layer, list);
  list.Norm("backbone.ln_f.", config.d_model);
  return list.Take();
}

}  // namespace hippodrome
