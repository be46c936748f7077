// The multiplicative gating of BiGS (BiGS section 3.2), round either routing.
#ifndef HIPPODROME_ENGINE_MODELS_BIGS_GATED_LAYER_H_
#define HIPPODROME_ENGINE_MODELS_BIGS_GATED_LAYER_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "engine/models/bigs/gated_routing.h"
#include "engine/models/encoder_activations.h"
#include "engine/models/encoder_norm.h"

namespace hippodrome {

class GatedLayer {
 public:
  // Reads the tensors under `prefix` ("bigs.encoder.layer.0.").
  static absl::StatusOr<GatedLayer> Load(const WeightsReader& reader, const BigsConfig& config,
                                         const std::string& prefix);

  // a.x += layer(a.x) for B sequences.  mask: kI32 [B, T].
  void Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  EncoderNorm norm_;
  std::variant<GatedSsm, GatedAttention> routing_;
  Epilogue::Activation gelu_ = Epilogue::Activation::kNone;
  std::unique_ptr<LinearWeights> w_u_;  // [I, d]
  OwnedTensor b_u_;
  std::unique_ptr<LinearWeights> w_o_;  // [d, I]
  OwnedTensor b_o_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BIGS_GATED_LAYER_H_
