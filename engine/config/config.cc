#include "engine/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/config/config_limits.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostPadding = 65536;
constexpr DecoderMixer kMixers[] = {DecoderMixer::kH3, DecoderMixer::kS4d, DecoderMixer::kS4,
                                    DecoderMixer::kGss, DecoderMixer::kLinearAttention};

// Refuses what this program does not implement.
void CheckArchitecture(ObjectReader& top) {
  if (top.Text("model_type", "h3") != "h3") top.Reject("model_type", "\"h3\"");
  if (!top.Boolean("tie_word_embeddings", true)) {
    top.Reject("tie_word_embeddings", "true: untied output embeddings are not supported");
  }
  const std::string activation = top.Text("activation", "gelu_tanh");
  if (activation != "gelu_tanh" && activation != "gelu_new") {
    top.Reject("activation", "\"gelu_tanh\" or \"gelu_new\"");
  }
}

void ReadDecoderSizes(ObjectReader& top, H3Config& config) {
  config.d_model = top.Integer("d_model", {1, kMostChannels});
  config.n_layer = top.Integer("n_layer", {1, kMostLayers});
  config.d_inner = top.Integer("d_inner", {1, kMostInner}, 4 * config.d_model);
  config.max_position_embeddings = top.Integer("max_position_embeddings", {0, kMostRows}, 0);
  config.layer_norm_epsilon = top.Positive("layer_norm_epsilon", 1.0, config.layer_norm_epsilon);
}

void ReadVocabulary(ObjectReader& top, H3Config& config) {
  config.vocab_size = top.Integer("vocab_size", {1, kMostRows});
  const int64_t multiple = top.Integer("pad_vocab_size_multiple", {1, kMostPadding}, 8);
  const int64_t padded = (config.vocab_size + multiple - 1) / multiple * multiple;
  config.padded_vocab_size =
      top.Integer("padded_vocab_size", {config.vocab_size, kMostRows + kMostPadding}, padded);
  config.eos_token_id = top.Integer("eos_token_id", {0, config.vocab_size - 1}, -1);
}

void CheckParametrisation(ObjectReader& ssm) {
  if (ssm.Text("mode", "diag") != "diag") {
    ssm.Reject("mode", "\"diag\": other parametrisations are not supported");
  }
}

void ReadHeads(ObjectReader& ssm, H3Config& config) {
  if (config.mixer == DecoderMixer::kLinearAttention) {
    config.head_dim = ssm.Integer("head_dim", {1, config.d_model});
  } else {
    const int64_t most = config.mixer == DecoderMixer::kH3 ? config.d_model : 1;
    config.head_dim = ssm.Integer("head_dim", {1, most}, config.head_dim);
  }
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

void ReadGssSizes(ObjectReader& ssm, H3Config& config) {
  const int64_t d = config.d_model;
  config.gss_channels =
      ssm.Integer("dss_kernel_H", {1, kMostChannels}, std::max<int64_t>(1, d / 4));
  config.gss_expansion = ssm.Integer("dim_expansion_factor", {1, kMostInner / d}, 4);
}

void ReadMixer(ObjectReader& top, H3Config& config) {
  const std::string name = top.Text("mixer", Name(config.mixer));
  const auto* mixer = std::find_if(std::begin(kMixers), std::end(kMixers),
                                   [&](DecoderMixer m) { return name == Name(m); });
  if (mixer == std::end(kMixers)) {
    return top.Reject("mixer", R"("h3", "s4d", "s4", "gss" or "linear_attention")");
  }
  config.mixer = *mixer;
}

// The sizes in ssm_cfg. REQUIRES: d_model, the positions and the mixer are known.
void ReadMixerSizes(ObjectReader& ssm, H3Config& config) {
  if (config.mixer == DecoderMixer::kLinearAttention) return ReadHeads(ssm, config);
  const int64_t state = config.mixer == DecoderMixer::kGss ? 512 : config.d_state;
  config.d_state = ssm.Integer("d_state", {2, kMostStates, true}, state);
  ReadHeads(ssm, config);
  ReadRows(ssm, config);
  if (config.mixer == DecoderMixer::kS4) {
    config.c_length = ssm.Integer("l_kernel", {0, kMostRows}, 0);
  }
  if (config.mixer == DecoderMixer::kGss) ReadGssSizes(ssm, config);
}

// What ReadMixerSizes() reads.
nlohmann::ordered_json MixerSizes(const H3Config& config) {
  if (config.mixer == DecoderMixer::kLinearAttention) return {{"head_dim", config.head_dim}};
  nlohmann::ordered_json json = {
      {"d_state", config.d_state}, {"head_dim", config.head_dim}, {"n_ssm", config.n_ssm}};
  if (config.mixer == DecoderMixer::kS4) json["l_kernel"] = config.c_length;
  if (config.mixer == DecoderMixer::kGss) {
    json["dss_kernel_H"] = config.gss_channels;
    json["dim_expansion_factor"] = config.gss_expansion;
  }
  return json;
}

void ReadAttentionLayers(ObjectReader& top, H3Config& config) {
  const Json* layers = top.Find("attn_layer_idx");
  if (layers == nullptr) return;
  const std::string expected =
      fmt::format("an array of different layers in [0, {}]", config.n_layer - 1);
  if (!layers->is_array()) return top.Reject("attn_layer_idx", expected);
  std::vector<bool> taken(config.n_layer);
  for (const Json& layer : *layers) {
    const bool valid = layer.is_number_unsigned() &&
                       layer.get<uint64_t>() < static_cast<uint64_t>(config.n_layer) &&
                       !taken[layer.get<size_t>()];
    if (!valid) return top.Reject("attn_layer_idx", expected);
    taken[layer.get<size_t>()] = true;
    config.attention_layers.push_back(layer.get<int64_t>());
  }
  std::sort(config.attention_layers.begin(), config.attention_layers.end());
}

void ReadAttention(ObjectReader& attention, H3Config& config) {
  if (config.attention_layers.empty()) return;
  config.attention_heads = attention.Integer("num_heads", {1, config.d_model});
  if (config.d_model % config.attention_heads != 0) {
    attention.Reject("num_heads", fmt::format("a divisor of d_model {}", config.d_model));
  }
  const int64_t head_size = config.d_model / config.attention_heads;
  config.rotary_dim = attention.Integer("rotary_emb_dim", {0, head_size, true}, 0);
}

void ReadDiscretization(ObjectReader& top, ObjectReader& ssm, H3Config& config) {
  const std::string nested = ssm.Text("disc", "");
  const std::string chosen = top.Text("discretization", nested.empty() ? "bilinear" : nested);
  if (!nested.empty() && nested != chosen) {
    ssm.Reject("disc", fmt::format("\"{}\", which discretization says", chosen));
  }
  if (chosen != "bilinear" && chosen != "zoh") {
    const std::string expected = "\"bilinear\" or \"zoh\"";
    const bool in_ssm = top.Find("discretization") == nullptr;
    in_ssm ? ssm.Reject("disc", expected) : top.Reject("discretization", expected);
  }
  config.discretization = chosen == "zoh" ? Discretization::kZoh : Discretization::kBilinear;
}

void ReadOutputOrder(ObjectReader& top, H3Config& config) {
  const std::string order = top.Text("h3_output_order", "head_d2");
  if (order != "head_d2" && order != "d2_head") {
    top.Reject("h3_output_order", "\"head_d2\" or \"d2_head\"");
  }
  config.output_order = order == "d2_head" ? H3OutputOrder::kD2Head : H3OutputOrder::kHeadD2;
}

// The object `name`, or an empty one.
const Json& Nested(ObjectReader& top, const char* name) {
  static const Json* const empty = new Json(Json::object());
  const Json* value = top.Find(name);
  if (value == nullptr) return *empty;
  if (value->is_object()) return *value;
  top.Reject(name, "an object or null");
  return *empty;
}

absl::StatusOr<H3Config> ReadDecoder(const Json& json) {
  ObjectReader top(json, "");
  ObjectReader ssm(Nested(top, "ssm_cfg"), "ssm_cfg.");
  ObjectReader attention(Nested(top, "attn_cfg"), "attn_cfg.");
  H3Config config;
  CheckArchitecture(top);
  ReadDecoderSizes(top, config);
  ReadVocabulary(top, config);
  ReadAttentionLayers(top, config);
  ReadMixer(top, config);
  if (config.mixer == DecoderMixer::kH3) {
    ReadOutputOrder(top, config);
    ReadDiscretization(top, ssm, config);
    CheckParametrisation(ssm);
  }
  HIPPODROME_RETURN_IF_ERROR(top.status());
  ReadMixerSizes(ssm, config);
  HIPPODROME_RETURN_IF_ERROR(ssm.status());
  ReadAttention(attention, config);
  HIPPODROME_RETURN_IF_ERROR(attention.status());
  return config;
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
    case DecoderMixer::kLinearAttention:
      return "linear_attention";
  }
  return "";
}

bool H3Config::IsAttention(int64_t layer) const {
  return std::binary_search(attention_layers.begin(), attention_layers.end(), layer);
}

absl::StatusOr<H3Config> ParseH3Config(const std::string& json_text) {
  const auto json = ParseJsonObject(json_text);
  if (!json.ok()) return InvalidArgument("config.json: " + Message(json.status()));
  auto config = ReadDecoder(*json);
  if (!config.ok()) return InvalidArgument("config.json: " + Message(config.status()));
  return config;
}

absl::StatusOr<H3Config> ReadH3Config(const std::string& directory) {
  constexpr size_t kLargestFile = 1 << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text,
                              ReadSmallFile(directory + "/config.json", kLargestFile));
  auto config = ParseH3Config(text);
  if (!config.ok()) return InvalidArgument(directory + "/" + Message(config.status()));
  return config;
}

std::string ToJson(const H3Config& config) {
  nlohmann::ordered_json json = {
      {"model_type", "h3"},
      {"d_model", config.d_model},
      {"n_layer", config.n_layer},
      {"d_inner", config.d_inner},
      {"vocab_size", config.vocab_size},
      {"padded_vocab_size", config.padded_vocab_size},
      {"mixer", Name(config.mixer)},
      {"ssm_cfg", MixerSizes(config)},
      {"attn_layer_idx", nullptr},
      {"attn_cfg", nullptr},
      {"max_position_embeddings", config.max_position_embeddings},
      {"layer_norm_epsilon", config.layer_norm_epsilon},
      {"tie_word_embeddings", true},
      {"activation", "gelu_tanh"},
  };
  if (config.mixer == DecoderMixer::kH3) {
    json["discretization"] = config.discretization == Discretization::kZoh ? "zoh" : "bilinear";
    json["h3_output_order"] = config.output_order == H3OutputOrder::kD2Head ? "d2_head" : "head_d2";
  }
  if (!config.attention_layers.empty()) {
    json["attn_layer_idx"] = config.attention_layers;
    json["attn_cfg"] = {{"num_heads", config.attention_heads},
                        {"rotary_emb_dim", config.rotary_dim}};
  }
  if (config.eos_token_id >= 0) json["eos_token_id"] = config.eos_token_id;
  return json.dump(1);
}

}  // namespace hippodrome
