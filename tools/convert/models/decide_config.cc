// Brings together what the shapes say and what the user says.
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "tools/convert/models/h3_presets.h"
#include "tools/convert/models/infer_config.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

absl::StatusOr<Json> ReadH3Hints(const ConfigHints& hints) {
  Json given = Json::object();
  if (!hints.preset.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const H3Config preset, H3Preset(hints.preset));
    given = Json::parse(ToJson(preset));
  } else if (!hints.config_json.empty()) {
    given = Json::parse(hints.config_json, nullptr, /*allow_exceptions=*/false);
    if (!given.is_object()) return InvalidArgument("the config is not a JSON object");
  }
  return given;
}

void SetIfAbsent(Json& object, const char* key, const Json& value) {
  if (!object.contains(key)) object[key] = value;
}

// Fills in what `given` leaves out. An explicit null stays: it says "none".
absl::Status Complete(const H3Config& inferred, const ConfigHints& hints, Json& given) {
  for (const char* nested : {"ssm_cfg", "attn_cfg"}) {
    if (!given.contains(nested)) continue;
    if (given[nested].is_null())
      given.erase(nested);
    else if (!given[nested].is_object()) {
      return InvalidArgument(std::string("config: ") + nested + " is not an object");
    }
  }
  SetIfAbsent(given, "model_type", "h3");
  SetIfAbsent(given, "d_model", inferred.d_model);
  SetIfAbsent(given, "n_layer", inferred.n_layer);
  SetIfAbsent(given, "d_inner", inferred.d_inner);
  SetIfAbsent(given, "vocab_size", inferred.vocab_size);
  SetIfAbsent(given, "padded_vocab_size", inferred.padded_vocab_size);
  SetIfAbsent(given, "max_position_embeddings", inferred.max_position_embeddings);
  SetIfAbsent(given, "attn_layer_idx", inferred.attention_layers);
  Json& ssm = given["ssm_cfg"];
  SetIfAbsent(ssm, "d_state", inferred.d_state);
  SetIfAbsent(ssm, "head_dim", inferred.head_dim);
  SetIfAbsent(ssm, "n_ssm", inferred.n_ssm);
  if (inferred.attention_layers.empty()) return absl::OkStatus();
  Json& attention = given["attn_cfg"];
  SetIfAbsent(attention, "rotary_emb_dim", inferred.rotary_dim);
  if (hints.attention_heads > 0) SetIfAbsent(attention, "num_heads", hints.attention_heads);
  return absl::OkStatus();
}

absl::Status Same(const char* key, int64_t given, int64_t found) {
  if (given == found) return absl::OkStatus();
  return InvalidArgument(std::string("config: ") + key + " is " + std::to_string(given) +
                         "; the tensors say " + std::to_string(found));
}

absl::Status Compare(const H3Config& given, const H3Config& found) {
  HIPPODROME_RETURN_IF_ERROR(Same("d_model", given.d_model, found.d_model));
  HIPPODROME_RETURN_IF_ERROR(Same("n_layer", given.n_layer, found.n_layer));
  HIPPODROME_RETURN_IF_ERROR(Same("d_inner", given.d_inner, found.d_inner));
  HIPPODROME_RETURN_IF_ERROR(
      Same("padded_vocab_size", given.padded_vocab_size, found.padded_vocab_size));
  HIPPODROME_RETURN_IF_ERROR(Same("max_position_embeddings", given.max_position_embeddings,
                                  found.max_position_embeddings));
  if (given.attention_layers != found.attention_layers) {
    return InvalidArgument("config: attn_layer_idx is " + ShapeText(given.attention_layers) +
                           "; the tensors say " + ShapeText(found.attention_layers));
  }
  HIPPODROME_RETURN_IF_ERROR(Same("attn_cfg.rotary_emb_dim", given.rotary_dim, found.rotary_dim));
  HIPPODROME_RETURN_IF_ERROR(Same("ssm_cfg.d_state", given.d_state, found.d_state));
  HIPPODROME_RETURN_IF_ERROR(Same("ssm_cfg.head_dim", given.head_dim, found.head_dim));
  return Same("ssm_cfg.n_ssm", given.n_ssm, found.n_ssm);
}

}  // namespace

absl::StatusOr<H3Config> DecideConfig(const ShapeMap& shapes, const ConfigHints& hints) {
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config inferred, InferConfig(shapes));
  HIPPODROME_ASSIGN_OR_RETURN(Json given, ReadH3Hints(hints));
  HIPPODROME_RETURN_IF_ERROR(Complete(inferred, hints, given));
  if (!inferred.attention_layers.empty() && !given["attn_cfg"].contains("num_heads")) {
    return InvalidArgument(
        "the number of attention heads cannot be told from the tensors; give --attn-heads N, "
        "--preset NAME, or --config FILE with attn_cfg.num_heads");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ParseH3Config(given.dump()));
  if (config.mixer != DecoderMixer::kH3) {
    return InvalidArgument(std::string("mixer is \"") + Name(config.mixer) +
                           "\", expected \"h3\": no checkpoints of others were published");
  }
  HIPPODROME_RETURN_IF_ERROR(Compare(config, inferred));
  if (hints.attention_heads > 0 && hints.attention_heads != config.attention_heads) {
    return InvalidArgument("--attn-heads is " + std::to_string(hints.attention_heads) +
                           "; the model has " + std::to_string(config.attention_heads));
  }
  return config;
}

}  // namespace hippodrome
