// What brings information from other tokens into a gated layer: two SSMs (BiGS section 3), or
// attention (the ablation of its Table 1).
#ifndef HIPPODROME_ENGINE_MODELS_BIGS_GATED_ROUTING_H_
#define HIPPODROME_ENGINE_MODELS_BIGS_GATED_ROUTING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/bigs_config.h"
#include "engine/models/encoder_activations.h"
#include "kernels/backend.h"

namespace hippodrome {

// Both in the layer's scratch.
struct Gated {
  Tensor v;  // [rows, I] the gate, of the token alone
  Tensor u;  // [rows, d] what came from other tokens
};

// U = (W_cf SSM_f(gelu(W_f y))) * (W_cb SSM_b(gelu(W_b y))), all with biases.
class GatedSsm {
 public:
  // Reads dv, du_*, duc_*, fs4 and bs4 under `prefix`.
  static absl::StatusOr<GatedSsm> Load(const WeightsReader& reader, const BigsConfig& config,
                                       const std::string& prefix);

  // mask: kI32 [B, T], for B alone: SSMs see padding.
  Gated Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  Epilogue::Activation gelu_ = Epilogue::Activation::kNone;
  std::unique_ptr<LinearWeights> w_vfb_;  // [I + 2 d, d]
  OwnedTensor b_vfb_;
  std::unique_ptr<LongConvWeights> ssm_f_, ssm_b_;
  std::unique_ptr<LinearWeights> w_cf_, w_cb_;  // [d, d]
  OwnedTensor b_cf_, b_cb_;
};

// U = W_c attention(y) + b.
class GatedAttention {
 public:
  // Reads dv, query, key, value and dc under `prefix`.
  static absl::StatusOr<GatedAttention> Load(const WeightsReader& reader, const BigsConfig& config,
                                             const std::string& prefix);

  // mask: kI32 [B, T] of the tokens that are attended to.
  Gated Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  AttentionShape shape_;
  Epilogue::Activation gelu_ = Epilogue::Activation::kNone;
  std::unique_ptr<LinearWeights> w_v_;  // [I, d]
  OwnedTensor b_v_;
  std::unique_ptr<LinearWeights> w_qkv_;  // [3 d, d]
  OwnedTensor b_qkv_;
  std::unique_ptr<LinearWeights> w_c_;  // [d, d]
  OwnedTensor b_c_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BIGS_GATED_ROUTING_H_
