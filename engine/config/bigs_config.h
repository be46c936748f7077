// The configuration of a BiGS encoder, as in the config.json of a model directory.
#ifndef HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_H_
#define HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace hippodrome {

// What an encoder was trained to answer: the class in "architectures".
enum class EncoderHead : uint8_t {
  kNone,                    // BiGSModel
  kMaskedLm,                // BiGSForMaskedLM
  kSequenceClassification,  // BiGSForSequenceClassification
  kMultipleChoice,          // BiGSForMultipleChoice
  kTokenClassification,     // BiGSForTokenClassification
  kQuestionAnswering,       // BiGSForQuestionAnswering
};

// How layers are built (BiGS, Table 1) ...
enum class EncoderBlock : uint8_t { kGated, kStack };
// ... and what carries information between tokens.
enum class EncoderRouting : uint8_t { kSsm, kAttention };

// JSON keys carry the names of the published code (BiGSConfig) in Hugging Face style; unknown keys
// are ignored. So are pre_norm, decode and scaling, as in the published PyTorch code: layers are
// always pre-norm.
struct BigsConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;  // d
  int64_t num_hidden_layers = 24;
  int64_t intermediate_size = 3072;       // I
  int64_t num_ssm = 64;                   // N complex modes
  int64_t num_ssm_heads = 1;              // H; divides d
  int64_t max_position_embeddings = 512;  // P: the longest input, with or without position table
  int64_t type_vocab_size = 2;
  int64_t pad_token_id = 0;
  double layer_norm_eps = 1e-12;
  bool position_table = true;       // position_embedding_type "absolute"
  bool tie_word_embeddings = true;  // of the masked-LM decoder
  bool pool_padding = false;        // pooler_type "mean" instead of "non_padding_mean"
  Epilogue::Activation hidden_act = Epilogue::Activation::kGeluErf;  // of the masked-LM head only
  Epilogue::Activation layer_gelu = Epilogue::Activation::kGeluErf;  // "layer_gelu": erf or tanh
  EncoderHead head = EncoderHead::kMaskedLm;
  std::vector<std::string> labels;                // id2label in order; one element: regression
  EncoderBlock block = EncoderBlock::kGated;      // "block": "gated" or "stack"
  EncoderRouting routing = EncoderRouting::kSsm;  // "routing": "ssm" or "attention"
  int64_t num_attention_heads = 0;                // with routing "attention"; divides d
  // Inputs are padded to this many tokens, because padding is never masked and answers depend on
  // it; 0: not at all ("pad_to": "none"). Default: max_position_embeddings.
  int64_t pad_to = 0;

  int64_t num_labels() const { return static_cast<int64_t>(labels.size()); }
};

// The name of the class, "BiGSForMaskedLM".
const char* Name(EncoderHead head);

// Reads and validates `json_text` field by field. Errors: kInvalidArgument naming the field, its
// value and what was expected.
absl::StatusOr<BigsConfig> ParseBigsConfig(const std::string& json_text);

// Reads DIR/config.json. Errors: as above, or kNotFound.
absl::StatusOr<BigsConfig> ReadBigsConfig(const std::string& directory);

// The text of a config.json from which ParseBigsConfig gives `config` again.
std::string ToJson(const BigsConfig& config);

enum class ModelFamily : uint8_t { kH3, kBigs };

// Of a config.json, by its "model_type": "BiGS", or "h3", which is also meant by none. Errors:
// kInvalidArgument for another one and for text that is no JSON object.
absl::StatusOr<ModelFamily> ParseModelFamily(const std::string& json_text);
absl::StatusOr<ModelFamily> ReadModelFamily(const std::string& directory);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_H_
