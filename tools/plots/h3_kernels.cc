#include "tools/plots/h3_kernels.h"

#include <algorithm>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/config.h"
#include "engine/models/h3/state_space.h"
#include "kernels/ssm/h3_ssm.h"

namespace hippodrome {
namespace {

H3LayerKernels Compute(int64_t layer, const H3Parameters& p, int64_t length) {
  H3LayerKernels kernels{.layer = layer, .heads = p.d_model / p.head_dim, .d_model = p.d_model};
  const std::vector<double> diagonal = H3Kernels(p, length);
  kernels.diagonal.assign(diagonal.begin(), diagonal.end());
  const std::vector<double> taps = H3Taps(p);
  kernels.shift.resize(p.d_model * length);
  const int64_t kept = std::min(length, p.d_state);
  for (int64_t c = 0; c < p.d_model; ++c) {
    std::copy_n(taps.begin() + c * p.d_state, kept, kernels.shift.begin() + c * length);
  }
  return kernels;
}

}  // namespace

absl::StatusOr<std::vector<H3LayerKernels>> ReadH3Kernels(const std::string& directory,
                                                          int64_t length) {
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ReadH3Config(directory));
  if (config.mixer != DecoderMixer::kH3 && std::ssize(config.attention_layers) < config.n_layer) {
    return FailedPrecondition(directory + ": kernels of mixer \"" + Name(config.mixer) +
                              "\" are not drawn, only those of \"h3\"");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  FileWeights source(*file);
  std::vector<H3LayerKernels> layers;
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    if (config.IsAttention(layer)) continue;
    HIPPODROME_ASSIGN_OR_RETURN(
        const StateSpaceParameters ssm,
        ReadStateSpace(source, config, "backbone.layers." + std::to_string(layer) + ".mixer."));
    layers.push_back(Compute(layer, ssm.View(config), length));
  }
  return layers;
}

}  // namespace hippodrome
