// The gated state space mixer (Mehta et al., 2022): a diagonal SSM on few channels, gated on many.
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_GSS_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_GSS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "kernels/backend.h"

namespace hippodrome {

class GssMixer {
 public:
  // Reads the tensors under `prefix` ("backbone.layers.0.mixer."): to_u.0, to_v.0, dss.norm,
  // dss.{Lambda_real, Lambda_imag, C, param_D}, to_gate and to_out. The norm before them is the
  // block's. dss.C is [E, N, 2], where other code has dss.C_real and dss.C_imag.
  static absl::StatusOr<GssMixer> Load(const WeightsReader& reader, const H3Config& config,
                                       const std::string& prefix);

  std::unique_ptr<RecurrentState> NewState(SequenceBackend& b, int64_t slots) const {
    return b.NewSsmState(*ssm_, slots);
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
  // What of a.wide is what.
  struct Parts {
    Tensor g;     // [rows, G]
    Tensor n, y;  // [rows, E], both ends of the SSM
  };
  static Parts PartsOf(const ActivationRows& a);

  double epsilon_ = 0;
  std::unique_ptr<LinearWeights> w_g_;  // [G, d], G gate channels
  std::unique_ptr<LinearWeights> w_v_;  // [E, d], E SSM channels
  OwnedTensor gamma_, beta_;            // [1, E]
  std::unique_ptr<SsmWeights> ssm_;
  std::unique_ptr<LinearWeights> w_y_;  // [G, E]
  std::unique_ptr<LinearWeights> w_o_;  // [d, G]
  OwnedTensor b_o_;                     // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_GSS_H_
