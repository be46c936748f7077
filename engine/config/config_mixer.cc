#include "engine/config/config_mixer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/config/config_limits.h"

namespace hippodrome {
namespace {

constexpr DecoderMixer kMixers[] = {DecoderMixer::kH3, DecoderMixer::kS4d, DecoderMixer::kS4,
                                    DecoderMixer::kGss};

void ReadHeads(ObjectReader& ssm, H3Config& config) {
  const int64_t most = config.mixer == DecoderMixer::kH3 ? config.d_model : 1;
  config.head_dim = ssm.Integer("head_dim", {1, most}, config.head_dim);
  if (config.d_model % config.head_dim != 0) {
    ssm.Reject("head_dim", fmt::format("a divisor of d_model {}", config.d_model));
  }
}

void ReadRows(ObjectReader& ssm, H3Config& config) {
  const bool shared = config.mixer == DecoderMixer::kS4d || config.mixer == DecoderMixer::kGss;
  const int64_t most = config.mixer == DecoderMixer::kGss ? 1 : config.heads();
  config.n_ssm = ssm.Integer("n_ssm", {1, most}, shared ? 1 : most);
  if (config.heads() % config.n_ssm != 0) {
    ssm.Reject("n_ssm", fmt::format("a divisor of the number of heads, {}", config.heads()));
  }
}

void ReadLongest(ObjectReader& ssm, H3Config& config) {
  constexpr int64_t kDefault = 2048;
  const int64_t positions = config.max_position_embeddings;
  config.longest = ssm.Integer("l_max", {1, kMostRows}, positions > 0 ? positions : kDefault);
}

void ReadGssSizes(ObjectReader& ssm, H3Config& config) {
  const int64_t d = config.d_model;
  config.gss_channels =
      ssm.Integer("dss_kernel_H", {1, kMostChannels}, std::max<int64_t>(1, d / 4));
  config.gss_expansion = ssm.Integer("dim_expansion_factor", {1, kMostInner / d}, 4);
}

}  // namespace

const char* Name(DecoderMixer mixer) {
  switch (mixer) {
    case DecoderMixer::kH3:
      return "h3";
    case DecoderMixer::kS4d:
      return "s4d";
    case DecoderMixer::kS4:
      return "s4";
    case DecoderMixer::kGss:
      return "gss";
  }
  return "";
}

void ReadMixer(ObjectReader& top, H3Config& config) {
  const std::string name = top.Text("mixer", Name(config.mixer));
  const auto* mixer = std::find_if(std::begin(kMixers), std::end(kMixers),
                                   [&](DecoderMixer m) { return name == Name(m); });
  if (mixer == std::end(kMixers)) {
    return top.Reject("mixer", R"("h3", "s4d", "s4" or "gss")");
  }
  config.mixer = *mixer;
}

void ReadMixerSizes(ObjectReader& ssm, H3Config& config) {
  const int64_t state = config.mixer == DecoderMixer::kGss ? 512 : config.d_state;
  config.d_state = ssm.Integer("d_state", {2, kMostStates, true}, state);
  ReadHeads(ssm, config);
  ReadRows(ssm, config);
  if (config.mixer != DecoderMixer::kH3) ReadLongest(ssm, config);
  if (config.mixer == DecoderMixer::kS4) {
    config.c_length = ssm.Integer("l_kernel", {0, kMostRows}, 0);
  }
  if (config.mixer == DecoderMixer::kGss) ReadGssSizes(ssm, config);
}

nlohmann::ordered_json MixerSizes(const H3Config& config) {
  nlohmann::ordered_json json = {
      {"d_state", config.d_state}, {"head_dim", config.head_dim}, {"n_ssm", config.n_ssm}};
  if (config.mixer != DecoderMixer::kH3) json["l_max"] = config.longest;
  if (config.mixer == DecoderMixer::kS4) json["l_kernel"] = config.c_length;
  if (config.mixer == DecoderMixer::kGss) {
    json["dss_kernel_H"] = config.gss_channels;
    json["dim_expansion_factor"] = config.gss_expansion;
  }
  return json;
}

}  // namespace hippodrome
