// The BiGS encoder (BiGS section 3): embeddings as BERT's, pre-norm layers that gate what two SSMs,
// one for each direction of time, bring from other tokens, and a head. With the papers' ablations:
// transformer blocks instead of gating, attention instead of SSMs.
#ifndef HIPPODROME_ENGINE_MODELS_BIGS_BIGS_H_
#define HIPPODROME_ENGINE_MODELS_BIGS_BIGS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/bigs_config.h"
#include "engine/models/baselines/stack_layer.h"
#include "engine/models/bigs/encoder_head.h"
#include "engine/models/bigs/gated_layer.h"
#include "engine/models/encoder_activations.h"
#include "engine/models/encoder_norm.h"
#include "kernels/backend.h"

namespace hippodrome {

// Padding is never masked but by attention and pooling: it takes part in everything, as in the
// published code. Immutable once loaded; all scratch is in EncoderActivations.
class Bigs {
 public:
  // Called after each layer with the layers loaded so far and in all.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // Errors name the tensor and what was expected. `linear_dtype`: of kWeightTypes.
  static absl::StatusOr<std::unique_ptr<Bigs>> Load(SequenceBackend& backend,
                                                    const BigsConfig& config, WeightsSource& source,
                                                    DType linear_dtype,
                                                    const Progress& progress = {});

  const BigsConfig& config() const { return config_; }
  DType linear_dtype() const { return linear_dtype_; }

  // For up to `max_rows` tokens, padding included.
  EncoderActivations NewActivations(SequenceBackend& b, int64_t max_rows) const {
    return EncoderActivations(b, config_, linear_dtype_, max_rows);
  }

  // x = LN(E[ids] + T[types] + P[positions]) in a.x.  ids, types, positions: kI32 [1, rows].
  void Embed(SequenceBackend& b, Tensor ids, Tensor types, Tensor positions,
             const EncoderRows& a) const;
  // Layer `layer` over a.x, B sequences of equal length, their rows adjacent.  mask: kI32 [B, T],
  // which only attention reads.
  void Layer(SequenceBackend& b, int64_t layer, const EncoderRows& a, Tensor mask) const;

  const EncoderHeadLayers& head() const { return head_; }
  // The word embedding, which is the decoder where that is tied.
  const LinearWeights& words() const { return *words_; }

 private:
  BigsConfig config_;
  DType linear_dtype_ = DType::kF32;
  std::unique_ptr<LinearWeights> words_;  // E [V, d]
  OwnedTensor types_;                     // T [type_vocab_size, d]
  OwnedTensor positions_;                 // P [max_position_embeddings, d] or empty
  EncoderNorm norm_;
  std::vector<std::variant<GatedLayer, StackLayer>> layers_;
  EncoderHeadLayers head_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BIGS_BIGS_H_
