#include "engine/models/bigs/gated_layer.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<GatedLayer> GatedLayer::Load(const WeightsReader& reader, const BigsConfig& config,
                                            const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  GatedLayer layer;
  HIPPODROME_ASSIGN_OR_RETURN(
      layer.norm_, EncoderNorm::Load(reader, prefix + "LayerNorm.", d, config.layer_norm_eps));
  if (config.routing == EncoderRouting::kSsm) {
    HIPPODROME_ASSIGN_OR_RETURN(layer.routing_, GatedSsm::Load(reader, config, prefix));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(layer.routing_, GatedAttention::Load(reader, config, prefix));
  }
  layer.gelu_ = config.layer_gelu;
  HIPPODROME_ASSIGN_OR_RETURN(layer.w_u_, reader.Linear({prefix + "dol.weight"}, inner, d));
  HIPPODROME_ASSIGN_OR_RETURN(layer.b_u_, reader.ActivationRow({prefix + "dol.bias"}, inner));
  HIPPODROME_ASSIGN_OR_RETURN(layer.w_o_, reader.Linear({prefix + "do.weight"}, d, inner));
  HIPPODROME_ASSIGN_OR_RETURN(layer.b_o_, reader.Row({prefix + "do.bias"}, d));
  return layer;
}

void GatedLayer::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  norm_.Apply(b, a.x, a.y);  // y = LN(x)
  const Gated routed =
      std::visit([&](const auto& routing) { return routing.Run(b, a, mask); }, routing_);
  const Tensor v = routed.v;  // V = gelu(W_v y + b)  [rows, I]
  const Tensor u = routed.u;  // U = routing(y)       [rows, d]
  const Tensor o = v;         // O                    [rows, I]
  b.Linear(u, *w_u_, {.bias = b_u_, .activation = gelu_, .gate = v},
           o);                                               // O = gelu(W_u U + b) * V
  b.Linear(o, *w_o_, {.bias = b_o_, .residual = a.x}, a.x);  // x = x + W_o O + b
}

}  // namespace hippodrome
