#include "engine/models/baselines/s4d.h"

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {
namespace {

absl::StatusOr<std::unique_ptr<SsmWeights>> LoadS4d(const WeightsReader& reader,
                                                    const H3Config& config,
                                                    const std::string& prefix) {
  const int64_t d = config.d_model;
  const int64_t modes = config.d_state / 2;
  const int64_t rows = config.n_ssm;
  const std::string kernel = prefix + "kernel.kernel.";
  WeightsSource& source = reader.source();
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_real,
                              ReadFinite(source, kernel + "log_w_real", {rows, modes}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_imag,
                              ReadFinite(source, kernel + "w_imag", {rows, modes}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats c,
                              ReadFinite(source, kernel + "C", {1, d, modes, 2}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats log_dt, ReadFinite(source, kernel + "log_dt", {d}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats skip, ReadFinite(source, prefix + "D", {1, d}));
  const DiagonalSsmParameters parameters = {.channels = d,
                                            .heads = d,
                                            .modes = modes,
                                            .n_ssm = rows,
                                            .form = StateMatrixForm::kExpReal,
                                            .scale = 2,
                                            .a_real = a_real,
                                            .a_imag = a_imag,
                                            .c = c,
                                            .log_step = log_dt,
                                            .d = skip};
  return reader.backend().PrepareSsm(parameters, reader.linear_dtype());
}

}  // namespace

absl::StatusOr<S4dMixer> S4dMixer::Load(const WeightsReader& reader, const H3Config& config,
                                        const std::string& prefix) {
  const int64_t d = config.d_model;
  const std::string o = prefix + "output_linear.";
  S4dMixer m;
  HIPPODROME_ASSIGN_OR_RETURN(m.ssm_, LoadS4d(reader, config, prefix));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({o + "weight"}, d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({o + "bias"}, d));
  return m;
}

void S4dMixer::Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                         const SequenceParts& parts) const {
  b.SsmSequence(*ssm_, a.u, state, parts, a.o);  // o = SSM(u)
}

void S4dMixer::Steps(Backend& b, const ActivationRows& a, RecurrentState& state,
                     Tensor slots) const {
  b.SsmStep(*ssm_, a.u, state, slots, a.o);  // o = SSM(u)
}

void S4dMixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  b.Activate(a.o, {.activation = Epilogue::Activation::kGeluErf}, a.o);  // o = gelu(o)
  b.Linear(a.o, *w_o_, {.bias = b_o_, .residual = a.r}, a.r);            // r = r + W_o o + b_o
}

}  // namespace hippodrome
