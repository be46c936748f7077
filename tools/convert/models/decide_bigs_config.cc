#include "tools/convert/models/decide_bigs_config.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json_object.h"
#include "engine/base/status.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/bigs_shapes.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

bool Has(const Json& object, const char* key) {
  return object.contains(key) && !object[key].is_null();
}

void SetDefault(Json& object, const char* key, const Json& value) {
  if (!Has(object, key)) object[key] = value;
}

absl::StatusOr<Json> ReadHints(const BigsHints& hints) {
  if (!hints.preset.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig preset, BigsPreset(hints.preset));
    Json given = Json::parse(ToJson(preset));
    given.erase("layer_gelu");  // the source decides
    return given;
  }
  if (hints.config_json.empty()) return Json::object();
  auto given = ParseJsonObject(hints.config_json);
  if (!given.ok()) return InvalidArgument("config: " + Message(given.status()));
  return given;
}

// One more than the largest N of "bigs.encoder.layer.N.".
int64_t CountLayers(const ShapeMap& shapes) {
  constexpr std::string_view kLayers = "bigs.encoder.layer.";
  int64_t layers = 0;
  for (const auto& [name, shape] : shapes) {
    if (!name.starts_with(kLayers)) continue;
    const char* digits = name.data() + kLayers.size();
    int32_t layer = -1;
    const auto [end, error] = std::from_chars(digits, name.data() + name.size(), layer);
    if (error == std::errc() && layer >= 0) layers = std::max<int64_t>(layers, layer + int64_t{1});
  }
  return layers;
}

absl::Status FillEmbeddings(const ShapeMap& shapes, Json& given) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto words, ShapeOf(shapes, kBigsWords, 2));
  HIPPODROME_ASSIGN_OR_RETURN(const auto types, ShapeOf(shapes, kBigsTypes, 2));
  SetDefault(given, "vocab_size", words[0]);
  SetDefault(given, "hidden_size", words[1]);
  SetDefault(given, "type_vocab_size", types[0]);
  if (!shapes.contains(kBigsPositions)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const auto positions, ShapeOf(shapes, kBigsPositions, 2));
  SetDefault(given, "max_position_embeddings", positions[0]);
  return absl::OkStatus();
}

absl::Status FillStateSpace(const ShapeMap& shapes, Json& given) {
  const std::string name = BigsLayerName(0, "fs4.kernel.A_re");
  const auto found = shapes.find(name);
  const bool heads = found != shapes.end() && found->second.size() == 2;
  HIPPODROME_ASSIGN_OR_RETURN(const auto modes, ShapeOf(shapes, name, heads ? 2 : 1));
  SetDefault(given, "num_ssm", modes.back());
  SetDefault(given, "num_ssm_heads", heads ? modes.front() : 1);
  return absl::OkStatus();
}

absl::Status FillAttention(const BigsHints& hints, Json& given) {
  if (hints.attention_heads > 0) SetDefault(given, "num_attention_heads", hints.attention_heads);
  if (Has(given, "num_attention_heads")) return absl::OkStatus();
  return InvalidArgument(
      "the number of attention heads cannot be told from the tensors; give --attn-heads N, or "
      "--config FILE with num_attention_heads");
}

absl::Status FillLayers(const ShapeMap& shapes, const BigsHints& hints, Json& given) {
  const bool stack = shapes.contains(BigsLayerName(0, "fc1.weight"));
  const bool attention = shapes.contains(BigsLayerName(0, "query.weight"));
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto inner, ShapeOf(shapes, BigsLayerName(0, stack ? "fc1.weight" : "dv.weight"), 2));
  SetDefault(given, "num_hidden_layers", CountLayers(shapes));
  SetDefault(given, "intermediate_size", inner[0]);
  SetDefault(given, "block", stack ? "stack" : "gated");
  SetDefault(given, "routing", attention ? "attention" : "ssm");
  return attention ? FillAttention(hints, given) : FillStateSpace(shapes, given);
}

// The class whose head the checkpoint has.
absl::StatusOr<EncoderHead> InferHead(const ShapeMap& shapes) {
  if (shapes.contains("cls.predictions.bias")) return EncoderHead::kMaskedLm;
  if (shapes.contains("qa_outputs.weight")) return EncoderHead::kQuestionAnswering;
  if (!shapes.contains("classifier.weight")) return EncoderHead::kNone;
  HIPPODROME_ASSIGN_OR_RETURN(const auto classifier, ShapeOf(shapes, "classifier.weight", 2));
  if (classifier[0] > 1) return EncoderHead::kSequenceClassification;
  return InvalidArgument(
      "tensor 'classifier.weight' has one row, for multiple choice or for regression; give "
      "--config FILE with architectures");
}

absl::Status FillHead(const ShapeMap& shapes, Json& given) {
  if (!Has(given, "architectures") || given["architectures"].empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const EncoderHead head, InferHead(shapes));
    given["architectures"] = Json::array({Name(head)});
  }
  if (!shapes.contains("classifier.weight")) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const auto classifier, ShapeOf(shapes, "classifier.weight", 2));
  SetDefault(given, "num_labels", classifier[0]);
  return absl::OkStatus();
}

void FillChoices(const BigsHints& hints, Json& given) {
  SetDefault(given, "layer_gelu", hints.flax ? "tanh" : "erf");
  if (!hints.layer_gelu.empty()) given["layer_gelu"] = hints.layer_gelu;
  if (!hints.pad_to.has_value()) return;
  given["pad_to"] = *hints.pad_to == 0 ? Json("none") : Json(*hints.pad_to);
}

}  // namespace

absl::StatusOr<BigsConfig> DecideBigsConfig(const ShapeMap& shapes, const BigsHints& hints) {
  HIPPODROME_ASSIGN_OR_RETURN(Json given, ReadHints(hints));
  HIPPODROME_RETURN_IF_ERROR(FillEmbeddings(shapes, given));
  HIPPODROME_RETURN_IF_ERROR(FillLayers(shapes, hints, given));
  HIPPODROME_RETURN_IF_ERROR(FillHead(shapes, given));
  FillChoices(hints, given);
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ParseBigsConfig(given.dump()));
  if (hints.attention_heads > 0 && hints.attention_heads != config.num_attention_heads) {
    return InvalidArgument("--attn-heads is " + std::to_string(hints.attention_heads) +
                           "; the model has " + std::to_string(config.num_attention_heads));
  }
  return config;
}

}  // namespace hippodrome
