#include "engine/config/bigs_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/config/bigs_config_words.h"
#include "engine/config/config_limits.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostPositions = int64_t{1} << 20;
constexpr int64_t kMostTypes = 65536;
constexpr int64_t kMostLabels = 65536;

// The value of the member's word; `value` stays when it is absent or unknown.
template <typename Value, size_t n>
void ReadWord(ObjectReader& top, const char* name, const ConfigWord<Value> (&words)[n],
              Value& value) {
  const Json* member = top.Find(name);
  if (member == nullptr) return;
  const ConfigWord<Value>* word =
      member->is_string() ? FindWord(words, member->get_ref<const std::string&>()) : nullptr;
  if (word == nullptr) return top.Reject(name, ListWords(words));
  value = word->value;
}

bool IsBigs(std::string_view model_type) { return model_type == "BiGS" || model_type == "bigs"; }

// The class, with or without the prefix of the Flax code.
void ReadHead(ObjectReader& top, BigsConfig& config) {
  const Json* classes = top.Find("architectures");
  if (classes == nullptr || (classes->is_array() && classes->empty())) return;
  const ConfigWord<EncoderHead>* head = nullptr;
  if (classes->is_array() && classes->front().is_string()) {
    std::string_view name = classes->front().get_ref<const std::string&>();
    if (name.starts_with("Flax")) name.remove_prefix(4);
    head = FindWord(kHeadWords, name);
  }
  if (head == nullptr) return top.Reject("architectures", "one of " + ListWords(kHeadWords));
  config.head = head->value;
}

void ReadSizes(ObjectReader& top, BigsConfig& config) {
  config.vocab_size = top.Integer("vocab_size", {1, kMostRows}, config.vocab_size);
  config.hidden_size = top.Integer("hidden_size", {1, kMostChannels}, config.hidden_size);
  config.num_hidden_layers =
      top.Integer("num_hidden_layers", {1, kMostLayers}, config.num_hidden_layers);
  config.intermediate_size =
      top.Integer("intermediate_size", {1, kMostInner}, config.intermediate_size);
  config.max_position_embeddings =
      top.Integer("max_position_embeddings", {1, kMostPositions}, config.max_position_embeddings);
  config.type_vocab_size = top.Integer("type_vocab_size", {1, kMostTypes}, config.type_vocab_size);
  config.pad_token_id =
      top.Integer("pad_token_id", {0, config.vocab_size - 1}, config.pad_token_id);
  config.layer_norm_eps = top.Positive("layer_norm_eps", 1.0, config.layer_norm_eps);
}

void ReadStateSpace(ObjectReader& top, BigsConfig& config) {
  config.num_ssm = top.Integer("num_ssm", {1, kMostStates}, config.num_ssm);
  config.num_ssm_heads =
      top.Integer("num_ssm_heads", {1, config.hidden_size}, config.num_ssm_heads);
  if (config.hidden_size % config.num_ssm_heads != 0) {
    top.Reject("num_ssm_heads", fmt::format("a divisor of hidden_size {}", config.hidden_size));
  }
}

void ReadLayers(ObjectReader& top, BigsConfig& config) {
  ReadWord(top, "layer_gelu", kLayerGeluWords, config.layer_gelu);
  ReadWord(top, "block", kBlockWords, config.block);
  ReadWord(top, "routing", kRoutingWords, config.routing);
  if (config.routing != EncoderRouting::kAttention) return;
  config.num_attention_heads = top.Integer("num_attention_heads", {1, config.hidden_size});
  if (config.hidden_size % config.num_attention_heads != 0) {
    top.Reject("num_attention_heads",
               fmt::format("a divisor of hidden_size {}", config.hidden_size));
  }
}

void ReadPadding(ObjectReader& top, BigsConfig& config) {
  const Json* pad_to = top.Find("pad_to");
  config.pad_to = config.max_position_embeddings;
  if (pad_to == nullptr) return;
  if (pad_to->is_string() && pad_to->get_ref<const std::string&>() == "none") {
    config.pad_to = 0;
  } else if (pad_to->is_number_unsigned() && pad_to->get<uint64_t>() >= 1 &&
             pad_to->get<uint64_t>() <= static_cast<uint64_t>(config.max_position_embeddings)) {
    config.pad_to = pad_to->get<int64_t>();
  } else {
    top.Reject("pad_to",
               fmt::format("\"none\" or an integer in [1, {}]", config.max_position_embeddings));
  }
}

std::vector<std::string> DefaultLabels(int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

// id2label: {"0": "entailment", "1": ..}.
void ReadNamedLabels(ObjectReader& top, const Json& names, BigsConfig& config) {
  const auto reject = [&] {
    top.Reject("id2label",
               fmt::format("an object from \"0\", \"1\", .. (at most {}) to strings", kMostLabels));
  };
  if (!names.is_object() || names.empty() || names.size() > kMostLabels) return reject();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto label = names.find(std::to_string(i));
    if (label == names.end() || !label->is_string()) return reject();
    config.labels.push_back(label->get<std::string>());
  }
}

// Only classifiers have labels; the other heads have a number of outputs of their own.
void ReadLabels(ObjectReader& top, BigsConfig& config) {
  if (config.head != EncoderHead::kSequenceClassification &&
      config.head != EncoderHead::kTokenClassification) {
    return;
  }
  if (const Json* names = top.Find("id2label")) return ReadNamedLabels(top, *names, config);
  config.labels = DefaultLabels(top.Integer("num_labels", {1, kMostLabels}, 2));
}

absl::StatusOr<BigsConfig> Read(const Json& json) {
  ObjectReader top(json, "");
  BigsConfig config;
  if (!IsBigs(top.Text("model_type", "BiGS"))) top.Reject("model_type", "\"BiGS\"");
  ReadHead(top, config);
  ReadSizes(top, config);
  HIPPODROME_RETURN_IF_ERROR(top.status());
  ReadStateSpace(top, config);
  ReadLayers(top, config);
  config.position_table = top.Text("position_embedding_type", "absolute") == "absolute";
  config.tie_word_embeddings = top.Boolean("tie_word_embeddings", true);
  ReadWord(top, "pooler_type", kPoolerWords, config.pool_padding);
  ReadWord(top, "hidden_act", kHiddenActWords, config.hidden_act);
  ReadPadding(top, config);
  ReadLabels(top, config);
  HIPPODROME_RETURN_IF_ERROR(top.status());
  return config;
}

absl::StatusOr<std::string> ReadConfigText(const std::string& directory) {
  constexpr size_t kLargestFile = size_t{16} << 20;  // labels take room
  return ReadSmallFile(directory + "/config.json", kLargestFile);
}

}  // namespace

absl::StatusOr<BigsConfig> ParseBigsConfig(const std::string& json_text) {
  const auto json = ParseJsonObject(json_text);
  if (!json.ok()) return InvalidArgument("config.json: " + Message(json.status()));
  auto config = Read(*json);
  if (!config.ok()) return InvalidArgument("config.json: " + Message(config.status()));
  return config;
}

absl::StatusOr<BigsConfig> ReadBigsConfig(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(directory));
  auto config = ParseBigsConfig(text);
  if (!config.ok()) return InvalidArgument(directory + "/" + Message(config.status()));
  return config;
}

absl::StatusOr<ModelFamily> ParseModelFamily(const std::string& json_text) {
  const auto json = ParseJsonObject(json_text);
  if (!json.ok()) return InvalidArgument("config.json: " + Message(json.status()));
  ObjectReader top(*json, "");
  const std::string type = top.Text("model_type", "h3");
  if (IsBigs(type)) return ModelFamily::kBigs;
  if (type != "h3") top.Reject("model_type", "\"h3\" or \"BiGS\"");
  if (!top.status().ok()) return InvalidArgument("config.json: " + Message(top.status()));
  return ModelFamily::kH3;
}

absl::StatusOr<ModelFamily> ReadModelFamily(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(directory));
  auto family = ParseModelFamily(text);
  if (!family.ok()) return InvalidArgument(directory + "/" + Message(family.status()));
  return family;
}

}  // namespace hippodrome
