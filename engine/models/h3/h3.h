// The H3 mixer (H3 section 3): q * SSM_diag(SSM_shift(k) v), between its projections.
#ifndef HIPPODROME_ENGINE_MODELS_H3_H3_H_
#define HIPPODROME_ENGINE_MODELS_H3_H3_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "kernels/backend.h"

namespace hippodrome {

class H3Mixer {
 public:
  // Reads the tensors under `prefix` ("backbone.layers.0.mixer.").
  static absl::StatusOr<H3Mixer> Load(const WeightsReader& reader, const H3Config& config,
                                      const std::string& prefix);

  // Before ProjectIn() of rows that Steps() will take.
  void ExpectSteps(Backend& b, const RecurrentState& state, Tensor slots, Tensor positions) const;
  // a.r += mixer(LN(a.r)): ProjectIn(), then Sequences() or Steps() of each row, then ProjectOut().
  void ProjectIn(SequenceBackend& b, const NormParameters& norm, const ActivationRows& a) const;
  // Over consecutive tokens of the sequences of `parts`.
  void Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                 const SequenceParts& parts) const;
  // Row i being the token at positions[i] of the sequence in slots[i].
  void Steps(Backend& b, const ActivationRows& a, RecurrentState& state, Tensor slots,
             Tensor positions) const;
  void ProjectOut(SequenceBackend& b, const ActivationRows& a) const;

  std::unique_ptr<RecurrentState> NewState(SequenceBackend& b, int64_t slots, DType type) const {
    return b.NewH3State(*ssm_, slots, type);
  }

 private:
  std::unique_ptr<LinearWeights> w_qkv_;  // [3 d, d]
  OwnedTensor b_qkv_;                     // [1, 3 d]
  std::unique_ptr<H3Weights> ssm_;
  std::unique_ptr<LinearWeights> w_o_;  // [d, d]
  OwnedTensor b_o_;                     // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_H3_H3_H_
