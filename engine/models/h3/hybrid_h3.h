// The Hybrid H3 decoder (H3 section 3.3): embedding, pre-norm blocks of a mixer (H3 or attention)
// and an MLP, final norm, tied head. With the papers' comparisons: S4D, S4, GSS or linear attention
// in H3's place.
#ifndef HIPPODROME_ENGINE_MODELS_H3_HYBRID_H3_H_
#define HIPPODROME_ENGINE_MODELS_H3_HYBRID_H3_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "engine/models/baselines/sequence_mixer.h"
#include "engine/models/h3/attention.h"
#include "engine/models/h3/h3.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// Consecutive tokens of some sequences, of none by default.
struct PrefillRows {
  SequenceParts parts;
  Tensor page_tables;  // kI32 [parts, P], row i of part i; empty for models without attention
  int64_t window = 0;  // of attention, see AttentionShape
};

// One token of each of several sequences, of none by default; all kI32, -1 in slots and positions
// marks an inert row.
struct StepRows {
  Tensor slots;        // [1, B]
  Tensor positions;    // [1, B]
  Tensor page_tables;  // [B, P]; empty for models without attention
  int64_t window = 0;  // of attention, see AttentionShape
};

// Immutable once loaded; all state is in LayerStates, all scratch in Activations.
class HybridH3 {
 public:
  // Called after each layer with the layers loaded so far and in all.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // Errors name the tensor and what was expected. `linear_dtype`: of kWeightTypes.
  static absl::StatusOr<std::unique_ptr<HybridH3>> Load(SequenceBackend& backend,
                                                        const H3Config& config,
                                                        WeightsSource& source, DType linear_dtype,
                                                        const Progress& progress = {});

  const H3Config& config() const { return config_; }
  int64_t layers() const { return config_.n_layer; }
  // Tells this model from others: of the configuration and of all tensors as they were loaded.
  const std::string& fingerprint() const { return fingerprint_; }
  // Of the packed matrices.
  DType linear_dtype() const { return linear_dtype_; }

  Activations NewActivations(SequenceBackend& b, int64_t max_rows) const {
    return Activations(b, config_, linear_dtype_, max_rows);
  }
  // For Logits(): [max_rows, padded_vocab_size], in rows of whole cache lines.
  OwnedTensor NewLogits(SequenceBackend& b, int64_t max_rows) const;
  // Empty states of the layers. `h3_state`: of Backend::NewH3State(); other layers have none but
  // f32.
  LayerStates NewLayerStates(SequenceBackend& b, int64_t slots, int64_t pages, int64_t page_tokens,
                             DType h3_state = DType::kF32) const;
  // The same, handed out by slots and pages.
  std::unique_ptr<DecodeState> NewState(Backend& b, int64_t slots, int64_t pages,
                                        int64_t page_tokens, int64_t window = 0,
                                        DType h3_state = DType::kF32) const;
  // Whether these can have an `h3_state` other than kF32. Errors: kInvalidArgument where no layer
  // is H3, kUnimplemented where `b` has none of that type.
  absl::Status CheckH3State(const SequenceBackend& b, DType h3_state) const;

  // a.r = E[ids] (+ P[positions]).  ids, positions: kI32 [1, rows].
  void Embed(SequenceBackend& b, Tensor ids, Tensor positions, const ActivationRows& a) const;
  // One block over a.r. Layers must be called in order; work on other activations may come between.
  void PrefillLayer(SequenceBackend& b, int64_t layer, const ActivationRows& a,
                    const PrefillRows& rows, const LayerStates& states) const;
  // The same where other sequences, of which there may be none, step: after the rows of the parts
  // comes one for each of them. What a row gets does not depend on the others (see Backend).
  void PassLayer(Backend& b, int64_t layer, const ActivationRows& a, const PrefillRows& parts,
                 const StepRows& steps, const LayerStates& states) const;
  // a.u = LN_f(a.r): what logits are made of.
  void Features(SequenceBackend& b, const ActivationRows& a) const;
  // logits = LN_f(a.r) E^T, padded columns included.  logits: [rows, padded_vocab_size].
  void Logits(SequenceBackend& b, const ActivationRows& a, Tensor logits) const;

  // E [padded V, d], the embedding and the tied head.
  const LinearWeights& embedding() const { return *embedding_; }

 private:
  struct Norm {
    OwnedTensor gamma, beta;  // [1, d]
  };
  using Mixer = std::variant<H3Mixer, AttentionMixer, SequenceMixer>;
  struct Block {
    Norm norm1, norm2;
    Mixer mixer;
    std::unique_ptr<LinearWeights> fc1, fc2;  // [d_inner, d], [d, d_inner]
    OwnedTensor fc1_bias, fc2_bias;
  };

  static absl::StatusOr<Norm> LoadNorm(const WeightsReader& reader, const H3Config& config,
                                       const std::string& prefix);
  static absl::StatusOr<Block> LoadBlock(const WeightsReader& reader, const H3Config& config,
                                         int64_t layer);
  NormParameters Parameters(const Norm& norm) const;
  // What a layer is but for the sequences and steps of its mixer.
  void EnterLayer(SequenceBackend& b, const Block& block, const ActivationRows& a) const;
  void LeaveLayer(SequenceBackend& b, const Block& block, const ActivationRows& a) const;
  void Sequences(SequenceBackend& b, int64_t layer, const ActivationRows& a,
                 const PrefillRows& rows, const LayerStates& states) const;
  void Steps(Backend& b, int64_t layer, const ActivationRows& a, const StepRows& rows,
             const LayerStates& states) const;
  void Mlp(SequenceBackend& b, const Block& block, const ActivationRows& a) const;

  H3Config config_;
  std::string fingerprint_;
  DType linear_dtype_ = DType::kF32;
  std::unique_ptr<LinearWeights> embedding_;  // E [padded V, d]
  OwnedTensor position_embedding_;            // P [max_position_embeddings, d] or empty
  std::vector<Block> blocks_;
  Norm ln_f_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_H3_HYBRID_H3_H_
