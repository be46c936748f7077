#include "tools/convert/models/bigs_shapes.h"

#include "tools/convert/models/spec_list.h"

namespace hippodrome {
namespace {

// [H] before the shape of one head, when there are several.
std::vector<int64_t> PerHead(const BigsConfig& config, std::vector<int64_t> shape) {
  if (config.num_ssm_heads > 1) shape.insert(shape.begin(), config.num_ssm_heads);
  return shape;
}

void AddStateSpace(const BigsConfig& config, const std::string& ssm, SpecList& list) {
  list.Vector(ssm + "D", PerHead(config, {1}));
  list.Vector(ssm + "kernel.C", PerHead(config, {config.num_ssm, 2}));
  list.Vector(ssm + "kernel.log_step", PerHead(config, {1}));
  list.Vector(ssm + "kernel.A_re", PerHead(config, {config.num_ssm}));
  list.Vector(ssm + "kernel.A_im", PerHead(config, {config.num_ssm}));
}

void AddRouting(const BigsConfig& config, const std::string& layer, SpecList& list) {
  const int64_t d = config.hidden_size;
  if (config.routing == EncoderRouting::kAttention) {
    for (const char* name : {"query", "key", "value", "dc"}) list.Linear(layer + name, d, d);
    return;
  }
  AddStateSpace(config, layer + "fs4.", list);
  AddStateSpace(config, layer + "bs4.", list);
  for (const char* name : {"du_forward", "du_backward", "duc_forward", "duc_backward"}) {
    list.Linear(layer + name, d, d);
  }
}

void AddLayer(const BigsConfig& config, const std::string& layer, SpecList& list) {
  const int64_t d = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  list.LayerNorm(layer + "LayerNorm", d);
  AddRouting(config, layer, list);
  if (config.block == EncoderBlock::kGated) {
    list.Linear(layer + "dv", inner, d);
    list.Linear(layer + "dol", inner, d);
    list.Linear(layer + "do", d, inner);
  } else {
    list.LayerNorm(layer + "mlp_norm", d);
    list.Linear(layer + "fc1", inner, d);
    list.Linear(layer + "fc2", d, inner);
  }
}

void AddMaskedLm(const BigsConfig& config, SpecList& list) {
  list.Vector("cls.predictions.bias", {config.vocab_size});
  list.HeadLinear("cls.predictions.transform.dense", config.hidden_size, config.hidden_size);
  list.LayerNorm("cls.predictions.transform.LayerNorm", config.hidden_size);
  if (!config.tie_word_embeddings) {
    list.EmbeddingOrHead(kBigsDecoder, config.vocab_size, config.hidden_size);
  }
}

void AddHead(const BigsConfig& config, SpecList& list) {
  switch (config.head) {
    case EncoderHead::kNone:
      return;
    case EncoderHead::kMaskedLm:
      return AddMaskedLm(config, list);
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kTokenClassification:
      return list.HeadLinear("classifier", config.num_labels(), config.hidden_size);
    case EncoderHead::kMultipleChoice:
      return list.HeadLinear("classifier", 1, config.hidden_size);
    case EncoderHead::kQuestionAnswering:
      return list.HeadLinear("qa_outputs", 2, config.hidden_size);
  }
}

bool Pools(EncoderHead head) {
  return head == EncoderHead::kSequenceClassification || head == EncoderHead::kMultipleChoice;
}

}  // namespace

std::string BigsLayerName(int64_t layer, const std::string& rest) {
  return "bigs.encoder.layer." + std::to_string(layer) + "." + rest;
}

std::vector<TensorSpec> BigsTensorSpecs(const BigsConfig& config, DType matrix_dtype,
                                        const BigsExtras& extras) {
  const int64_t d = config.hidden_size;
  SpecList list(matrix_dtype);
  list.EmbeddingOrHead(kBigsWords, config.vocab_size, d);
  if (config.position_table || extras.positions) {
    list.Vector(kBigsPositions, {config.max_position_embeddings, d});
  }
  list.Vector(kBigsTypes, {config.type_vocab_size, d});
  list.LayerNorm("bigs.embeddings.LayerNorm", d);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    AddLayer(config, BigsLayerName(layer, ""), list);
  }
  if (Pools(config.head) || extras.pooler) list.HeadLinear("bigs.pooler.dense", d, d);
  AddHead(config, list);
  return list.Take();
}

BigsExtras FindExtras(const ShapeMap& shapes) {
  return {.positions = shapes.contains(kBigsPositions), .pooler = shapes.contains(kBigsPooler)};
}

}  // namespace hippodrome
