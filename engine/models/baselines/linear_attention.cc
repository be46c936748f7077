#include "engine/models/baselines/linear_attention.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<LinearAttentionMixer> LinearAttentionMixer::Load(const WeightsReader& reader,
                                                                const H3Config& config,
                                                                const std::string& prefix) {
  const int64_t d = config.d_model;
  LinearAttentionMixer m;
  m.shape_ = {.heads = config.heads(), .head_dim = config.head_dim};
  HIPPODROME_ASSIGN_OR_RETURN(m.w_qkv_, reader.Linear({prefix + "Wqkv.weight"}, 3 * d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_qkv_, reader.ActivationRow({prefix + "Wqkv.bias"}, 3 * d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({prefix + "out_proj.weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({prefix + "out_proj.bias"}, d));
  return m;
}

void LinearAttentionMixer::ProjectIn(SequenceBackend& b, const NormParameters& norm,
                                     const ActivationRows& a) const {
  // u = LN(r);  q, k, v = W u + b
  b.LayerNormLinear(a.r, norm, a.u, *w_qkv_, {.bias = b_qkv_}, a.qkv);
}

void LinearAttentionMixer::Sequences(SequenceBackend& b, const ActivationRows& a,
                                     RecurrentState& state, const SequenceParts& parts) const {
  b.LinearAttentionSequence(shape_, a.qkv, state, parts, a.o);  // o = phi(q) S / phi(q) z
}

void LinearAttentionMixer::Steps(Backend& b, const ActivationRows& a, RecurrentState& state,
                                 Tensor slots) const {
  b.LinearAttentionStep(shape_, a.qkv, state, slots, a.o);  // o = phi(q) S / phi(q) z
}

void LinearAttentionMixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  b.Linear(a.o, *w_o_, {.bias = b_o_, .residual = a.r}, a.r);  // r = r + W_o o + b_o
}

}  // namespace hippodrome
