#include "engine/models/bigs/bigs.h"

#include <string>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

absl::StatusOr<std::variant<GatedLayer, StackLayer>> LoadLayer(const WeightsReader& reader,
                                                               const BigsConfig& config,
                                                               int64_t layer) {
  const std::string prefix = "bigs.encoder.layer." + std::to_string(layer) + ".";
  if (config.block == EncoderBlock::kStack) return StackLayer::Load(reader, config, prefix);
  return GatedLayer::Load(reader, config, prefix);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bigs>> Bigs::Load(SequenceBackend& backend, const BigsConfig& config,
                                                 WeightsSource& source, DType linear_dtype,
                                                 const Progress& progress) {
  const WeightsReader reader(source, backend, linear_dtype);
  const int64_t d = config.hidden_size;
  const std::string embeddings = "bigs.embeddings.";
  auto model = std::make_unique<Bigs>();
  model->config_ = config;
  model->linear_dtype_ = linear_dtype;
  HIPPODROME_ASSIGN_OR_RETURN(
      model->words_,
      reader.EmbeddingOrHead(embeddings + "word_embeddings.weight", config.vocab_size, d));
  HIPPODROME_ASSIGN_OR_RETURN(
      model->types_,
      reader.Matrix(embeddings + "token_type_embeddings.weight", config.type_vocab_size, d));
  if (config.position_table) {
    HIPPODROME_ASSIGN_OR_RETURN(model->positions_,
                                reader.Matrix(embeddings + "position_embeddings.weight",
                                              config.max_position_embeddings, d));
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      model->norm_, EncoderNorm::Load(reader, embeddings + "LayerNorm.", d, config.layer_norm_eps));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    HIPPODROME_ASSIGN_OR_RETURN(auto loaded, LoadLayer(reader, config, layer));
    model->layers_.push_back(std::move(loaded));
    if (progress) progress(layer + 1, config.num_hidden_layers);
  }
  HIPPODROME_ASSIGN_OR_RETURN(model->head_, EncoderHeadLayers::Load(reader, config));
  return model;
}

void Bigs::Embed(SequenceBackend& b, Tensor ids, Tensor types, Tensor positions,
                 const EncoderRows& a) const {
  b.Embedding(*words_, ids, {types_, types}, {positions_, positions},
              a.x);          // x = E[id] + T[type] + P[t]
  norm_.Apply(b, a.x, a.x);  // x = LN(x)
  b.Dropout(DropoutSite::kEmbedding, a.x);
}

void Bigs::Layer(SequenceBackend& b, int64_t layer, const EncoderRows& a, Tensor mask) const {
  std::visit([&](const auto& l) { l.Run(b, a, mask); }, layers_[layer]);
}

}  // namespace hippodrome
