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

  // a.r += mixer(a.u) over as many whole sequences, from position 0.
  void Prefill(SequenceBackend& b, const ActivationRows& a, int64_t sequences) const;

 private:
  double epsilon_ = 0;
  std::unique_ptr<LinearWeights> w_g_;  // [G, d], G gate channels
  std::unique_ptr<LinearWeights> w_v_;  // [E, d], E SSM channels
  OwnedTensor gamma_, beta_;            // [1, E]
  std::unique_ptr<LongConvWeights> ssm_;
  std::unique_ptr<LinearWeights> w_y_;  // [G, E]
  std::unique_ptr<LinearWeights> w_o_;  // [d, G]
  OwnedTensor b_o_;                     // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_GSS_H_
