#include "engine/models/baselines/gss.h"

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {
namespace {

absl::StatusOr<std::unique_ptr<SsmWeights>> LoadGss(const WeightsReader& reader,
                                                    const H3Config& config,
                                                    const std::string& prefix) {
  const int64_t e = config.gss_channels;
  const int64_t n = config.d_state;
  WeightsSource& source = reader.source();
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_real,
                              ReadFinite(source, prefix + "Lambda_real", {n}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_imag,
                              ReadFinite(source, prefix + "Lambda_imag", {n}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats c, ReadFinite(source, prefix + "C", {e, n, 2}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats skip, ReadFinite(source, prefix + "param_D", {e}));
  const DiagonalSsmParameters parameters = {.channels = e,
                                            .heads = e,
                                            .modes = n,
                                            .n_ssm = 1,
                                            .form = StateMatrixForm::kExpBoth,
                                            .a_real = a_real,
                                            .a_imag = a_imag,
                                            .c = c,
                                            .log_step = {},
                                            .d = skip};
  return reader.backend().PrepareSsm(parameters, reader.linear_dtype());
}

}  // namespace

absl::StatusOr<GssMixer> GssMixer::Load(const WeightsReader& reader, const H3Config& config,
                                        const std::string& prefix) {
  const int64_t d = config.d_model;
  const int64_t e = config.gss_channels;
  const int64_t g = config.gss_expansion * d;
  GssMixer m;
  m.epsilon_ = config.layer_norm_epsilon;
  HIPPODROME_ASSIGN_OR_RETURN(m.w_g_, reader.Linear({prefix + "to_u.0.weight"}, g, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_v_, reader.Linear({prefix + "to_v.0.weight"}, e, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.gamma_, reader.Row({prefix + "dss.norm.weight"}, e));
  HIPPODROME_ASSIGN_OR_RETURN(m.beta_, reader.Row({prefix + "dss.norm.bias"}, e));
  HIPPODROME_ASSIGN_OR_RETURN(m.ssm_, LoadGss(reader, config, prefix + "dss."));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_y_, reader.Linear({prefix + "to_gate.weight"}, g, e));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({prefix + "to_out.weight"}, d, g));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({prefix + "to_out.bias"}, d));
  return m;
}

GssMixer::Parts GssMixer::PartsOf(const ActivationRows& a) {
  const int64_t e = a.stream.cols;
  const int64_t gates = a.wide.cols - 2 * e;
  return {.g = a.wide.Cols(0, gates), .n = a.wide.Cols(gates, e), .y = a.wide.Cols(gates + e, e)};
}

void GssMixer::ProjectIn(SequenceBackend& b, const NormParameters& norm,
                         const ActivationRows& a) const {
  constexpr auto kGelu = Epilogue::Activation::kGeluErf;
  const auto [g, n, y] = PartsOf(a);
  const Tensor v = a.stream;                                   // [rows, E]
  b.LayerNorm(a.r, norm.gamma, norm.beta, norm.epsilon, a.u);  // u = LN(r)
  b.Linear(a.u, *w_g_, {.activation = kGelu}, g);              // g = gelu(W_g u)
  b.Linear(a.u, *w_v_, {.activation = kGelu}, v);              // v = gelu(W_v u)
  b.LayerNorm(v, gamma_, beta_, epsilon_, n);                  // n = LN(v)
}

void GssMixer::Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                         const SequenceParts& parts) const {
  const auto [g, n, y] = PartsOf(a);
  b.SsmSequence(*ssm_, n, state, parts, y);  // y = SSM(n)
}

void GssMixer::Steps(Backend& b, const ActivationRows& a, RecurrentState& state,
                     Tensor slots) const {
  const auto [g, n, y] = PartsOf(a);
  b.SsmStep(*ssm_, n, state, slots, y);  // y = SSM(n)
}

void GssMixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  const auto [g, n, y] = PartsOf(a);
  b.Linear(y, *w_y_, {.gate = g}, g);                        // g = (W_y y) * g
  b.Linear(g, *w_o_, {.bias = b_o_, .residual = a.r}, a.r);  // r = r + W_o g + b_o
}

}  // namespace hippodrome
