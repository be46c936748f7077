#include "engine/models/baselines/stack_layer.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<StackLayer> StackLayer::Load(const WeightsReader& reader, const BigsConfig& config,
                                            const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  const double epsilon = config.layer_norm_eps;
  StackLayer layer;
  HIPPODROME_ASSIGN_OR_RETURN(layer.norm1_,
                              EncoderNorm::Load(reader, prefix + "LayerNorm.", d, epsilon));
  HIPPODROME_ASSIGN_OR_RETURN(layer.norm2_,
                              EncoderNorm::Load(reader, prefix + "mlp_norm.", d, epsilon));
  if (config.routing == EncoderRouting::kSsm) {
    HIPPODROME_ASSIGN_OR_RETURN(layer.routing_, StackSsm::Load(reader, config, prefix));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(layer.routing_, StackAttention::Load(reader, config, prefix));
  }
  layer.gelu_ = config.layer_gelu;
  HIPPODROME_ASSIGN_OR_RETURN(layer.w_1_, reader.Linear({prefix + "fc1.weight"}, inner, d));
  HIPPODROME_ASSIGN_OR_RETURN(layer.b_1_, reader.ActivationRow({prefix + "fc1.bias"}, inner));
  HIPPODROME_ASSIGN_OR_RETURN(layer.w_2_, reader.Linear({prefix + "fc2.weight"}, d, inner));
  HIPPODROME_ASSIGN_OR_RETURN(layer.b_2_, reader.Row({prefix + "fc2.bias"}, d));
  return layer;
}

void StackLayer::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  norm1_.Apply(b, a.x, a.y);  // y = LN1(x)
  std::visit([&](const auto& routing) { routing.Run(b, a, mask); },
             routing_);                                          // x = x + routing(y)
  norm2_.Apply(b, a.x, a.y);                                     // y = LN2(x)
  const Tensor z = a.wide.Cols(0, w_1_->out());                  // [rows, I]
  b.Linear(a.y, *w_1_, {.bias = b_1_, .activation = gelu_}, z);  // z = gelu(W_1 y + b)
  b.Linear(z, *w_2_, {.bias = b_2_, .residual = a.x}, a.x);      // x = x + W_2 z + b
}

}  // namespace hippodrome
