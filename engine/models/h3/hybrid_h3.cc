#include "engine/models/h3/hybrid_h3.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/base/status.h"
#include "engine/checkpoint/fingerprint_weights.h"

namespace hippodrome {
namespace {

// Calls `work` with the mixer, whichever it is.
template <typename Mixer, typename Work>
void ForMixer(const Mixer& mixer, const Work& work) {
  std::visit(
      [&](const auto& kind) {
        if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, SequenceMixer>) {
          std::visit(work, kind);
        } else {
          work(kind);
        }
      },
      mixer);
}

}  // namespace

absl::StatusOr<HybridH3::Norm> HybridH3::LoadNorm(const WeightsReader& reader,
                                                  const H3Config& config,
                                                  const std::string& prefix) {
  Norm norm;
  HIPPODROME_ASSIGN_OR_RETURN(norm.gamma, reader.Row({prefix + "weight"}, config.d_model));
  HIPPODROME_ASSIGN_OR_RETURN(norm.beta, reader.Row({prefix + "bias"}, config.d_model));
  return norm;
}

absl::StatusOr<HybridH3::Block> HybridH3::LoadBlock(const WeightsReader& reader,
                                                    const H3Config& config, int64_t layer) {
  const std::string prefix = "backbone.layers." + std::to_string(layer) + ".";
  Block block;
  HIPPODROME_ASSIGN_OR_RETURN(block.norm1, LoadNorm(reader, config, prefix + "norm1."));
  HIPPODROME_ASSIGN_OR_RETURN(block.norm2, LoadNorm(reader, config, prefix + "norm2."));
  if (config.IsAttention(layer)) {
    HIPPODROME_ASSIGN_OR_RETURN(block.mixer,
                                AttentionMixer::Load(reader, config, prefix + "mixer."));
  } else if (config.mixer == DecoderMixer::kH3) {
    HIPPODROME_ASSIGN_OR_RETURN(block.mixer, H3Mixer::Load(reader, config, prefix + "mixer."));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(block.mixer, LoadSequenceMixer(reader, config, prefix + "mixer."));
  }
  const int64_t d = config.d_model;
  const std::string mlp = prefix + "mlp.";
  HIPPODROME_ASSIGN_OR_RETURN(block.fc1, reader.Linear({mlp + "fc1.weight"}, config.d_inner, d));
  HIPPODROME_ASSIGN_OR_RETURN(block.fc1_bias,
                              reader.ActivationRow({mlp + "fc1.bias"}, config.d_inner));
  HIPPODROME_ASSIGN_OR_RETURN(block.fc2, reader.Linear({mlp + "fc2.weight"}, d, config.d_inner));
  HIPPODROME_ASSIGN_OR_RETURN(block.fc2_bias, reader.Row({mlp + "fc2.bias"}, d));
  return block;
}

absl::StatusOr<std::unique_ptr<HybridH3>> HybridH3::Load(SequenceBackend& backend,
                                                         const H3Config& config,
                                                         WeightsSource& source, DType linear_dtype,
                                                         const Progress& progress) {
  FingerprintWeights tensors(source, ToJson(config));
  const WeightsReader reader(tensors, backend, linear_dtype);
  auto model = std::make_unique<HybridH3>();
  model->config_ = config;
  model->linear_dtype_ = linear_dtype;
  const std::string embeddings = "backbone.embeddings.";
  HIPPODROME_ASSIGN_OR_RETURN(model->embedding_,
                              reader.EmbeddingOrHead(embeddings + "word_embeddings.weight",
                                                     config.padded_vocab_size, config.d_model));
  if (config.max_position_embeddings > 0) {
    HIPPODROME_ASSIGN_OR_RETURN(model->position_embedding_,
                                reader.Matrix(embeddings + "position_embeddings.weight",
                                              config.max_position_embeddings, config.d_model));
  }
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    HIPPODROME_ASSIGN_OR_RETURN(Block block, LoadBlock(reader, config, layer));
    model->blocks_.push_back(std::move(block));
    if (progress) progress(layer + 1, config.n_layer);
  }
  HIPPODROME_ASSIGN_OR_RETURN(model->ln_f_, LoadNorm(reader, config, "backbone.ln_f."));
  model->fingerprint_ = tensors.fingerprint();
  return model;
}

LayerStates HybridH3::NewLayerStates(SequenceBackend& b, int64_t slots, int64_t pages,
                                     int64_t page_tokens, DType h3_state) const {
  LayerStates states;
  for (const Block& block : blocks_) {
    const auto* attention = std::get_if<AttentionMixer>(&block.mixer);
    states.attention.push_back(attention ? attention->NewPages(b, pages, page_tokens) : nullptr);
    if (const auto* h3 = std::get_if<H3Mixer>(&block.mixer)) {
      states.recurrent.push_back(h3->NewState(b, slots, h3_state));
    } else if (const auto* sequence = std::get_if<SequenceMixer>(&block.mixer)) {
      states.recurrent.push_back(
          std::visit([&](const auto& mixer) { return mixer.NewState(b, slots); }, *sequence));
    } else {
      states.recurrent.push_back(nullptr);
    }
  }
  return states;
}

std::unique_ptr<DecodeState> HybridH3::NewState(Backend& b, int64_t slots, int64_t pages,
                                                int64_t page_tokens, int64_t window,
                                                DType h3_state) const {
  return std::make_unique<DecodeState>(b, NewLayerStates(b, slots, pages, page_tokens, h3_state),
                                       slots, pages, window);
}

absl::Status HybridH3::CheckH3State(const SequenceBackend& b, DType h3_state) const {
  if (h3_state == DType::kF32) return absl::OkStatus();
  const std::string type = WeightsName(h3_state);
  const bool has_h3 = std::ranges::any_of(
      blocks_, [](const Block& block) { return std::holds_alternative<H3Mixer>(block.mixer); });
  if (!has_h3) {
    return InvalidArgument("h3_state is " + type + ", but the model has no H3 layers");
  }
  if (b.HasH3States(h3_state)) return absl::OkStatus();
  return Unimplemented(b.name() + " has no " + type + " states of H3 layers, expected f32");
}

OwnedTensor HybridH3::NewLogits(SequenceBackend& b, int64_t max_rows) const {
  // Stores to rows that begin within a line cross two: 1 to 2 % of the product on processors.
  constexpr int64_t kLineValues = 16;
  const int64_t width = (config_.padded_vocab_size + kLineValues - 1) / kLineValues * kLineValues;
  OwnedTensor logits = b.NewTensor(max_rows, width);
  logits.view.cols = config_.padded_vocab_size;
  return logits;
}

void HybridH3::Embed(SequenceBackend& b, Tensor ids, Tensor positions,
                     const ActivationRows& a) const {
  b.Embedding(*embedding_, ids, {}, {position_embedding_, positions}, a.r);  // r = E[id] + P[t]
  b.Dropout(DropoutSite::kEmbedding, a.r);
}

void HybridH3::PrefillLayer(SequenceBackend& b, int64_t layer, const ActivationRows& a,
                            const PrefillRows& rows, const LayerStates& states) const {
  EnterLayer(b, blocks_[layer], a);
  Sequences(b, layer, a, rows, states);
  LeaveLayer(b, blocks_[layer], a);
}

void HybridH3::PassLayer(Backend& b, int64_t layer, const ActivationRows& a,
                         const PrefillRows& parts, const StepRows& steps,
                         const LayerStates& states) const {
  const int64_t taken_in = parts.parts.rows();
  if (const auto* h3 = std::get_if<H3Mixer>(&blocks_[layer].mixer); h3 && steps.slots.cols > 0) {
    h3->ExpectSteps(b, *states.recurrent[layer], steps.slots, steps.positions);
  }
  EnterLayer(b, blocks_[layer], a);
  if (taken_in > 0) Sequences(b, layer, a.Rows(0, taken_in), parts, states);
  if (steps.slots.cols > 0) {
    Steps(b, layer, a.Rows(taken_in, steps.slots.cols), steps, states);
  }
  LeaveLayer(b, blocks_[layer], a);
}

void HybridH3::EnterLayer(SequenceBackend& b, const Block& block, const ActivationRows& a) const {
  const NormParameters norm1 = Parameters(block.norm1);
  ForMixer(block.mixer, [&](const auto& mixer) { mixer.ProjectIn(b, norm1, a); });
}

// r = r + mixer(LN1(r)), with the two around it.
void HybridH3::Sequences(SequenceBackend& b, int64_t layer, const ActivationRows& a,
                         const PrefillRows& rows, const LayerStates& states) const {
  const Mixer& mixer = blocks_[layer].mixer;
  if (const auto* h3 = std::get_if<H3Mixer>(&mixer)) {
    h3->Sequences(b, a, *states.recurrent[layer], rows.parts);
  } else if (const auto* attention = std::get_if<AttentionMixer>(&mixer)) {
    attention->Sequences(b, a, *states.attention[layer], rows.page_tables, rows.parts, rows.window);
  } else {
    std::visit(
        [&](const auto& other) { other.Sequences(b, a, *states.recurrent[layer], rows.parts); },
        std::get<SequenceMixer>(mixer));
  }
}

void HybridH3::Steps(Backend& b, int64_t layer, const ActivationRows& a, const StepRows& rows,
                     const LayerStates& states) const {
  const Mixer& mixer = blocks_[layer].mixer;
  if (const auto* h3 = std::get_if<H3Mixer>(&mixer)) {
    h3->Steps(b, a, *states.recurrent[layer], rows.slots, rows.positions);
  } else if (const auto* attention = std::get_if<AttentionMixer>(&mixer)) {
    attention->Steps(b, a, *states.attention[layer], rows.page_tables, rows.positions, rows.window);
  } else {
    std::visit([&](const auto& other) { other.Steps(b, a, *states.recurrent[layer], rows.slots); },
               std::get<SequenceMixer>(mixer));
  }
}

void HybridH3::LeaveLayer(SequenceBackend& b, const Block& block, const ActivationRows& a) const {
  ForMixer(block.mixer, [&](const auto& mixer) { mixer.ProjectOut(b, a); });
  Mlp(b, block, a);
}

void HybridH3::Mlp(SequenceBackend& b, const Block& block, const ActivationRows& a) const {
  // u = LN2(r);  z = gelu(W_1 u + b_1)
  b.LayerNormLinear(a.r, Parameters(block.norm2), a.u, *block.fc1,
                    {.bias = block.fc1_bias, .activation = Epilogue::Activation::kGeluTanh},
                    a.hidden);
  b.Linear(a.hidden, *block.fc2, {.bias = block.fc2_bias, .residual = a.r},
           a.r);  // r = r + W_2 z + b_2
}

void HybridH3::Features(SequenceBackend& b, const ActivationRows& a) const {
  b.LayerNorm(a.r, ln_f_.gamma, ln_f_.beta, config_.layer_norm_epsilon, a.u);  // u = LN_f(r)
}

void HybridH3::Logits(SequenceBackend& b, const ActivationRows& a, Tensor logits) const {
  // u = LN_f(r);  logits = u E^T
  b.LayerNormLinear(a.r, Parameters(ln_f_), a.u, *embedding_, {}, logits);
}

NormParameters HybridH3::Parameters(const Norm& norm) const {
  return {.gamma = norm.gamma, .beta = norm.beta, .epsilon = config_.layer_norm_epsilon};
}

}  // namespace hippodrome
