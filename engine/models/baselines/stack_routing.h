// What brings information from other tokens into the block of a transformer: two SSMs one after the
// other in place of attention, or attention.
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_STACK_ROUTING_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_STACK_ROUTING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/bigs_config.h"
#include "engine/models/encoder_activations.h"
#include "kernels/backend.h"

namespace hippodrome {

// x += W_cb SSM_b(gelu(W_b (W_cf SSM_f(gelu(W_f y))))), all with biases.
class StackSsm {
 public:
  // Reads du_*, duc_*, fs4 and bs4 under `prefix`.
  static absl::StatusOr<StackSsm> Load(const WeightsReader& reader, const BigsConfig& config,
                                       const std::string& prefix);

  // mask: kI32 [B, T], for B alone: SSMs see padding.
  void Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  // One SSM between its projections.
  struct Pass {
    std::unique_ptr<LinearWeights> w_in, w_out;  // [d, d]
    OwnedTensor b_in, b_out;
    std::unique_ptr<LongConvWeights> ssm;
  };

  Epilogue::Activation gelu_ = Epilogue::Activation::kNone;
  Pass forward_, backward_;
};

// x += W_c attention(y) + b.
class StackAttention {
 public:
  // Reads query, key, value and dc under `prefix`.
  static absl::StatusOr<StackAttention> Load(const WeightsReader& reader, const BigsConfig& config,
                                             const std::string& prefix);

  // mask: kI32 [B, T] of the tokens that are attended to.
  void Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  AttentionShape shape_;
  std::unique_ptr<LinearWeights> w_qkv_;  // [3 d, d]
  OwnedTensor b_qkv_;
  std::unique_ptr<LinearWeights> w_c_;  // [d, d]
  OwnedTensor b_c_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_STACK_ROUTING_H_
