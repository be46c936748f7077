#include "tools/convert/models/h3_presets.h"

#include <map>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

H3Config PublishedH3(int64_t d_model, int64_t n_layer, std::vector<int64_t> attention_layers,
                     int64_t attention_heads, int64_t rotary_dim) {
  H3Config config;
  config.d_model = d_model;
  config.n_layer = n_layer;
  config.d_inner = 4 * d_model;
  config.vocab_size = 50257;
  config.padded_vocab_size = 50264;
  config.n_ssm = d_model;
  config.attention_layers = std::move(attention_layers);
  config.attention_heads = attention_heads;
  config.rotary_dim = rotary_dim;
  config.eos_token_id = 50256;
  return config;
}

const std::map<std::string, H3Config>& Presets() {
  static const auto* const presets = new std::map<std::string, H3Config>{
      {"h3-125m", PublishedH3(768, 12, {6}, 12, 0)},
      {"h3-355m", PublishedH3(1024, 24, {8, 16}, 16, 0)},
      {"h3-1.3b", PublishedH3(2048, 24, {8, 16}, 16, 0)},
      {"h3-2.7b", PublishedH3(2560, 32, {10, 21}, 20, 64)},
      {"h3-2.7b-3attn", PublishedH3(2560, 32, {8, 16, 24}, 20, 0)},
  };
  return *presets;
}

}  // namespace

const std::string& H3PresetNames() {
  static const auto* const names = new std::string("h3-125m|h3-355m|h3-1.3b|h3-2.7b|h3-2.7b-3attn");
  return *names;
}

absl::StatusOr<H3Config> H3Preset(const std::string& name) {
  const auto preset = Presets().find(name);
  if (preset == Presets().end()) {
    return InvalidArgument("unknown preset '" + name + "'; expected " + H3PresetNames());
  }
  return preset->second;
}

}  // namespace hippodrome
