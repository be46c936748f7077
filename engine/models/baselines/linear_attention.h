// The linear attention mixer (Katharopoulos et al., 2020), which H3 descends from.
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_LINEAR_ATTENTION_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_LINEAR_ATTENTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "kernels/backend.h"

namespace hippodrome {

class LinearAttentionMixer {
 public:
  // Reads the tensors under `prefix` ("backbone.layers.0.mixer."), those of attention: Wqkv and
  // out_proj.
  static absl::StatusOr<LinearAttentionMixer> Load(const WeightsReader& reader,
                                                   const H3Config& config,
                                                   const std::string& prefix);

  std::unique_ptr<RecurrentState> NewState(SequenceBackend& b, int64_t slots) const {
    return b.NewLinearAttentionState(shape_, slots);
  }

  // a.r += mixer(LN(a.r)): ProjectIn(), then Sequences() or Steps() of each row, then ProjectOut().
  void ProjectIn(SequenceBackend& b, const NormParameters& norm, const ActivationRows& a) const;
  // Over consecutive tokens of the sequences of `parts`.
  void Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                 const SequenceParts& parts) const;
  // Row i being the next token of the sequence in slots[i].
  void Steps(Backend& b, const ActivationRows& a, RecurrentState& state, Tensor slots) const;
  void ProjectOut(SequenceBackend& b, const ActivationRows& a) const;

 private:
  LinearAttentionShape shape_;
  std::unique_ptr<LinearWeights> w_qkv_;  // [3 d, d], rows q | k | v, head-major
  OwnedTensor b_qkv_;                     // [1, 3 d]
  std::unique_ptr<LinearWeights> w_o_;    // [d, d]
  OwnedTensor b_o_;                       // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_LINEAR_ATTENTION_H_
