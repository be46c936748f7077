#include "engine/models/baselines/stack_routing.h"

#include "engine/base/status.h"
#include "engine/models/diagonal_ssm.h"

namespace hippodrome {

absl::StatusOr<StackSsm> StackSsm::Load(const WeightsReader& reader, const BigsConfig& config,
                                        const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const std::string f = prefix + "du_forward.", cf = prefix + "duc_forward.";
  const std::string bw = prefix + "du_backward.", cb = prefix + "duc_backward.";
  StackSsm m;
  m.gelu_ = config.layer_gelu;
  HIPPODROME_ASSIGN_OR_RETURN(m.forward_.w_in, reader.Linear({f + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.forward_.b_in, reader.ActivationRow({f + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.forward_.ssm, LoadDiagonalSsm(reader, config, prefix + "fs4."));
  HIPPODROME_ASSIGN_OR_RETURN(m.forward_.w_out, reader.Linear({cf + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.forward_.b_out, reader.ActivationRow({cf + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.backward_.w_in, reader.Linear({bw + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.backward_.b_in, reader.ActivationRow({bw + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.backward_.ssm, LoadDiagonalSsm(reader, config, prefix + "bs4."));
  HIPPODROME_ASSIGN_OR_RETURN(m.backward_.w_out, reader.Linear({cb + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.backward_.b_out, reader.Row({cb + "bias"}, d));
  return m;
}

void StackSsm::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  const int64_t d = a.y.cols;
  const Tensor f = a.wide.Cols(0, d);   // [rows, d]
  const Tensor bw = a.wide.Cols(d, d);  // [rows, d]
  const Tensor s = a.y;                 // [rows, d], once F is made of y
  const Tensor h = f;                   // [rows, d], once SSM_f(F) is in s
  b.Linear(a.y, *forward_.w_in, {.bias = forward_.b_in, .activation = gelu_},
           f);                                                      // F = gelu(W_f y + b)
  b.LongConv(*forward_.ssm, f, mask.rows, Direction::kForward, s);  // s = SSM_f(F)
  b.Linear(s, *forward_.w_out, {.bias = forward_.b_out}, h);        // h = W_cf s + b
  b.Linear(h, *backward_.w_in, {.bias = backward_.b_in, .activation = gelu_},
           bw);                                                        // B = gelu(W_b h + b)
  b.LongConv(*backward_.ssm, bw, mask.rows, Direction::kBackward, s);  // s = SSM_b(B)
  b.Linear(s, *backward_.w_out, {.bias = backward_.b_out, .residual = a.x},
           a.x);  // x = x + W_cb s + b
}

absl::StatusOr<StackAttention> StackAttention::Load(const WeightsReader& reader,
                                                    const BigsConfig& config,
                                                    const std::string& prefix) {
  const int64_t d = config.hidden_size;
  const std::string q = prefix + "query.", k = prefix + "key.", v = prefix + "value.";
  StackAttention m;
  m.shape_ = {.heads = config.num_attention_heads, .head_dim = d / config.num_attention_heads};
  HIPPODROME_ASSIGN_OR_RETURN(m.w_qkv_,
                              reader.Linear({q + "weight", k + "weight", v + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_qkv_,
                              reader.ActivationRow({q + "bias", k + "bias", v + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_c_, reader.Linear({prefix + "dc.weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_c_, reader.Row({prefix + "dc.bias"}, d));
  return m;
}

void StackAttention::Run(SequenceBackend& b, const EncoderRows& a, Tensor mask) const {
  const Tensor qkv = a.wide.Cols(0, 3 * a.y.cols);  // [rows, 3 d]
  const Tensor o = a.y;                             // [rows, d], once q, k and v are made of y
  b.Linear(a.y, *w_qkv_, {.bias = b_qkv_}, qkv);    // q, k, v = W y + b
  b.BidirectionalAttention(shape_, qkv, mask, o);   // o = softmax(q k^T / sqrt(e)) v
  b.Linear(o, *w_c_, {.bias = b_c_, .residual = a.x}, a.x);  // x = x + W_c o + b
}

}  // namespace hippodrome
