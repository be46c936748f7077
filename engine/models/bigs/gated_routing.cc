#include "engine/models/bigs/gated_routing.h"

#include "engine/base/status.h"
#include "engine/models/diagonal_ssm.h"

namespace hippodrome {
namespace {

std::vector<NamedPart> Named(const std::string& prefix, const char* kind,
                             const std::vector<NamedPart>& parts) {
  std::vector<NamedPart> named;
  for (const NamedPart& part : parts) named.push_back({prefix + part.name + kind, part.size});
  return named;
}

}  // namespace

absl::StatusOr<GatedSsm> GatedSsm::Load(const WeightsReader& reader, const BigsConfig& config,
                                        const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const std::vector<NamedPart> vfb = {
      {"dv", config.intermediate_size}, {"du_forward", d}, {"du_backward", d}};
  const std::string cf = prefix + "duc_forward.";
  const std::string cb = prefix + "duc_backward.";
  GatedSsm m;
  m.gelu_ = config.layer_gelu;
  HIPPODROME_ASSIGN_OR_RETURN(m.w_vfb_, reader.Linear(Named(prefix, ".weight", vfb), d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_vfb_, reader.ActivationRow(Named(prefix, ".bias", vfb)));
  HIPPODROME_ASSIGN_OR_RETURN(m.ssm_f_, LoadDiagonalSsm(reader, config, prefix + "fs4."));
  HIPPODROME_ASSIGN_OR_RETURN(m.ssm_b_, LoadDiagonalSsm(reader, config, prefix + "bs4."));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_cf_, reader.Linear({cf + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_cf_, reader.ActivationRow({cf + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_cb_, reader.Linear({cb + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_cb_, reader.ActivationRow({cb + "bias"}, d));
  return m;
}

Gated GatedSsm::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  const int64_t d = a.y.cols;
  const int64_t inner = a.wide.cols - 2 * d;
  const Tensor v_f_b = a.wide;                 // [rows, I + 2 d]
  const Tensor v = v_f_b.Cols(0, inner);       // [rows, I]
  const Tensor f = v_f_b.Cols(inner, d);       // [rows, d]
  const Tensor bw = v_f_b.Cols(inner + d, d);  // [rows, d]
  const Tensor s = a.y;                        // [rows, d], once V, F and B are made of y
  const Tensor u1 = f;                         // [rows, d], once SSM_f(F) is in s
  const Tensor u = bw;                         // [rows, d], once SSM_b(B) is in s
  b.Linear(a.y, *w_vfb_, {.bias = b_vfb_, .activation = gelu_},
           v_f_b);                                              // V, F, B = gelu(W y + b)
  b.LongConv(*ssm_f_, f, mask.rows, Direction::kForward, s);    // s = SSM_f(F)
  b.Linear(s, *w_cf_, {.bias = b_cf_}, u1);                     // U1 = W_cf s + b
  b.LongConv(*ssm_b_, bw, mask.rows, Direction::kBackward, s);  // s = Flip(SSM_b(Flip(B)))
  b.Linear(s, *w_cb_, {.bias = b_cb_, .gate = u1}, u);          // U = (W_cb s + b) * U1
  return {v, u};
}

absl::StatusOr<GatedAttention> GatedAttention::Load(const WeightsReader& reader,
                                                    const BigsConfig& config,
                                                    const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  const std::vector<NamedPart> qkv = {{"query", d}, {"key", d}, {"value", d}};
  GatedAttention m;
  m.shape_ = {.heads = config.num_attention_heads, .head_dim = d / config.num_attention_heads};
  m.gelu_ = config.layer_gelu;
  HIPPODROME_ASSIGN_OR_RETURN(m.w_v_, reader.Linear({prefix + "dv.weight"}, inner, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_v_, reader.ActivationRow({prefix + "dv.bias"}, inner));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_qkv_, reader.Linear(Named(prefix, ".weight", qkv), d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_qkv_, reader.ActivationRow(Named(prefix, ".bias", qkv)));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_c_, reader.Linear({prefix + "dc.weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_c_, reader.ActivationRow({prefix + "dc.bias"}, d));
  return m;
}

Gated GatedAttention::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  const int64_t d = a.y.cols;
  const int64_t inner = a.wide.cols - 3 * d;
  const Tensor v = a.wide.Cols(0, inner);        // [rows, I]
  const Tensor qkv = a.wide.Cols(inner, 3 * d);  // [rows, 3 d]
  const Tensor o = a.y;                          // [rows, d], once V, q, k and v are made of y
  const Tensor u = qkv.Cols(0, d);               // [rows, d], once o is made of q, k and v
  b.Linear(a.y, *w_v_, {.bias = b_v_, .activation = gelu_}, v);  // V = gelu(W_v y + b)
  b.Linear(a.y, *w_qkv_, {.bias = b_qkv_}, qkv);                 // q, k, v = W y + b
  b.BidirectionalAttention(shape_, qkv, mask, o);                // o = softmax(q k^T / sqrt(e)) v
  b.Linear(o, *w_c_, {.bias = b_c_}, u);                         // U = W_c o + b
  return {v, u};
}

}  // namespace hippodrome
