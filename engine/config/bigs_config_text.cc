// Configurations as text.
#include <nlohmann/json.hpp>

#include "engine/config/bigs_config.h"
#include "engine/config/bigs_config_words.h"

namespace hippodrome {

const char* Name(EncoderHead head) { return WordOf(kHeadWords, head); }

std::string ToJson(const BigsConfig& config) {
  nlohmann::ordered_json json = {
      {"model_type", "BiGS"},
      {"architectures", nlohmann::ordered_json::array({Name(config.head)})},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"intermediate_size", config.intermediate_size},
      {"num_ssm", config.num_ssm},
      {"num_ssm_heads", config.num_ssm_heads},
      {"max_position_embeddings", config.max_position_embeddings},
      {"type_vocab_size", config.type_vocab_size},
      {"pad_token_id", config.pad_token_id},
      {"layer_norm_eps", config.layer_norm_eps},
      {"position_embedding_type", config.position_table ? "absolute" : "none"},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"pooler_type", WordOf(kPoolerWords, config.pool_padding)},
      {"hidden_act", WordOf(kHiddenActWords, config.hidden_act)},
      {"layer_gelu", WordOf(kLayerGeluWords, config.layer_gelu)},
      {"block", WordOf(kBlockWords, config.block)},
      {"routing", WordOf(kRoutingWords, config.routing)},
  };
  if (config.routing == EncoderRouting::kAttention) {
    json["num_attention_heads"] = config.num_attention_heads;
  }
  for (size_t i = 0; i < config.labels.size(); ++i) {
    json["id2label"][std::to_string(i)] = config.labels[i];
  }
  if (config.pad_to == 0) {
    json["pad_to"] = "none";
  } else {
    json["pad_to"] = config.pad_to;
  }
  return json.dump(1);
}

}  // namespace hippodrome
