#include <string>

#include "engine/base/status.h"
#include "engine/initialization/decoder_mixer_weights.h"
#include "engine/initialization/initial_weights.h"
#include "engine/initialization/parameter_list.h"

namespace hippodrome {
namespace {

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
