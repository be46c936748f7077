#include "engine/models/h3/h3.h"

#include "engine/base/status.h"
#include "engine/models/h3/state_space.h"

namespace hippodrome {

absl::StatusOr<H3Mixer> H3Mixer::Load(const WeightsReader& reader, const H3Config& config,
                                      const std::string& prefix) {
  const int64_t d = config.d_model;
  const std::string q = prefix + "q_proj.", k = prefix + "k_proj.", v = prefix + "v_proj.";
  const std::string o = prefix + "output_linear.";
  H3Mixer m;
  HIPPODROME_ASSIGN_OR_RETURN(m.w_qkv_,
                              reader.Linear({q + "weight", k + "weight", v + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_qkv_,
                              reader.ActivationRow({q + "bias", k + "bias", v + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({o + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({o + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(StateSpaceParameters ssm,
                              ReadStateSpace(reader.source(), config, prefix));
  m.ssm_ = reader.backend().PrepareH3(ssm.View(config), reader.linear_dtype());
  return m;
}

void H3Mixer::ExpectSteps(Backend& b, const RecurrentState& state, Tensor slots,
                          Tensor positions) const {
  b.ExpectH3Step(*ssm_, state, slots, positions);
}

void H3Mixer::ProjectIn(SequenceBackend& b, const NormParameters& norm,
                        const ActivationRows& a) const {
  // u = LN(r);  q, k, v = W u + b
  b.LayerNormLinear(a.r, norm, a.u, *w_qkv_, {.bias = b_qkv_}, a.qkv);
}

void H3Mixer::Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                        const SequenceParts& parts) const {
  b.H3Sequence(*ssm_, a.qkv, state, parts, a.o);  // o = q SSM_diag(SSM_shift(k) v)
}

void H3Mixer::Steps(Backend& b, const ActivationRows& a, RecurrentState& state, Tensor slots,
                    Tensor positions) const {
  b.ExpectLinear(*w_o_);
  b.H3Step(*ssm_, a.qkv, state, slots, positions, a.o);  // o = q SSM_diag(SSM_shift(k) v)
}

void H3Mixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  b.Linear(a.o, *w_o_, {.bias = b_o_, .residual = a.r}, a.r);  // r = r + W_o o + b_o
}

}  // namespace hippodrome
