// The S4D mixer (Gu et al., 2022): a diagonal SSM for each channel, GELU, and a projection.
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_S4D_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_S4D_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "kernels/backend.h"

namespace hippodrome {

class S4dMixer {
 public:
  // Reads the tensors under `prefix` ("backbone.layers.0.mixer."): kernel.kernel.{C, log_dt,
  // log_w_real, w_imag}, D and output_linear.
  static absl::StatusOr<S4dMixer> Load(const WeightsReader& reader, const H3Config& config,
                                       const std::string& prefix);

  std::unique_ptr<RecurrentState> NewState(SequenceBackend& b, int64_t slots) const {
    return b.NewSsmState(*ssm_, slots);
  }

  // a.r += mixer(LN(a.r)): ProjectIn(), then Sequences() or Steps() of each row, then ProjectOut().
  void ProjectIn(SequenceBackend& b, const NormParameters& norm, const ActivationRows& a) const {
    b.LayerNorm(a.r, norm.gamma, norm.beta, norm.epsilon, a.u);  // u = LN(r), which the SSM reads
  }
  // Over consecutive tokens of the sequences of `parts`.
  void Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                 const SequenceParts& parts) const;
  // Row i being the next token of the sequence in slots[i].
  void Steps(Backend& b, const ActivationRows& a, RecurrentState& state, Tensor slots) const;
  void ProjectOut(SequenceBackend& b, const ActivationRows& a) const;

 private:
  std::unique_ptr<SsmWeights> ssm_;
  std::unique_ptr<LinearWeights> w_o_;  // [d, d]
  OwnedTensor b_o_;                     // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_S4D_H_
