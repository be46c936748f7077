// The block of a transformer, pre-norm, round either routing: the ablations "stack" of BiGS, Table
// 1. With attention it is BERT's.
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_STACK_LAYER_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_STACK_LAYER_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "engine/models/baselines/stack_routing.h"
#include "engine/models/encoder_activations.h"
#include "engine/models/encoder_norm.h"

namespace hippodrome {

class StackLayer {
 public:
  // Reads the tensors under `prefix` ("bigs.encoder.layer.0.").
  static absl::StatusOr<StackLayer> Load(const WeightsReader& reader, const BigsConfig& config,
                                         const std::string& prefix);

  // a.x += routing(a.x); a.x += mlp(a.x), for B sequences.  mask: kI32 [B, T].
  void Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const;

 private:
  EncoderNorm norm1_, norm2_;
  std::variant<StackSsm, StackAttention> routing_;
  Epilogue::Activation gelu_ = Epilogue::Activation::kNone;
  std::unique_ptr<LinearWeights> w_1_, w_2_;  // [I, d], [d, I]
  OwnedTensor b_1_, b_2_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_STACK_LAYER_H_
