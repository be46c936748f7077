#include "engine/models/h3/attention.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<AttentionMixer> AttentionMixer::Load(const WeightsReader& reader,
                                                    const H3Config& config,
                                                    const std::string& prefix) {
  const int64_t d = config.d_model;
  AttentionMixer m;
  m.shape_ = {.heads = config.attention_heads,
              .head_dim = d / config.attention_heads,
              .rotary_dim = config.rotary_dim};
  m.linear_dtype_ = reader.linear_dtype();
  HIPPODROME_ASSIGN_OR_RETURN(m.w_qkv_, reader.Linear({prefix + "Wqkv.weight"}, 3 * d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_qkv_, reader.ActivationRow({prefix + "Wqkv.bias"}, 3 * d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({prefix + "out_proj.weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({prefix + "out_proj.bias"}, d));
  if (config.rotary_dim > 0) {
    HIPPODROME_ASSIGN_OR_RETURN(
        m.inv_freq_, reader.Row({prefix + "rotary_emb.inv_freq"}, config.rotary_dim / 2));
  }
  return m;
}

void AttentionMixer::ProjectIn(SequenceBackend& b, const NormParameters& norm,
                               const ActivationRows& a) const {
  // u = LN(r);  q, k, v = W u + b
  b.LayerNormLinear(a.r, norm, a.u, *w_qkv_, {.bias = b_qkv_}, a.qkv);
}

void AttentionMixer::Sequences(SequenceBackend& b, const ActivationRows& a, KeyValuePages& pages,
                               Tensor page_tables, const SequenceParts& parts,
                               int64_t window) const {
  b.AttentionSequence(Windowed(window), a.qkv, inv_freq_, pages, page_tables, parts,
                      a.o);  // o = softmax(q k^T / sqrt(e)) v
}

void AttentionMixer::Steps(Backend& b, const ActivationRows& a, KeyValuePages& pages,
                           Tensor page_tables, Tensor positions, int64_t window) const {
  b.ExpectLinear(*w_o_);
  b.AttentionStep(Windowed(window), a.qkv, inv_freq_, pages, page_tables, positions,
                  a.o);  // o = softmax(q k^T / sqrt(e)) v
}

void AttentionMixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  b.Linear(a.o, *w_o_, {.bias = b_o_, .residual = a.r}, a.r);  // r = r + W_o o + b_o
}

}  // namespace hippodrome
