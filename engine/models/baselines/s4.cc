#include "engine/models/baselines/s4.h"

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {
namespace {

absl::StatusOr<std::unique_ptr<SsmWeights>> LoadS4(const WeightsReader& reader,
                                                   const H3Config& config,
                                                   const std::string& prefix) {
  const int64_t d = config.d_model;
  const int64_t modes = config.d_state / 2;
  const int64_t rows = config.n_ssm;
  const std::string kernel = prefix + "kernel.";
  WeightsSource& source = reader.source();
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_real,
                              ReadFinite(source, kernel + "A_real", {rows, modes}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats a_imag,
                              ReadFinite(source, kernel + "A_imag", {rows, modes}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats b,
                              ReadFinite(source, kernel + "B", {1, rows, modes, 2}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats p,
                              ReadFinite(source, kernel + "P", {1, rows, modes, 2}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats c,
                              ReadFinite(source, kernel + "C", {1, d, modes, 2}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats inv_dt,
                              ReadFinite(source, kernel + "inv_dt", {d, 1}));
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats skip, ReadFinite(source, prefix + "D", {1, d}));
  const NplrParameters parameters = {.channels = d,
                                     .modes = modes,
                                     .n_ssm = rows,
                                     .c_length = config.c_length,
                                     .a_real = a_real,
                                     .a_imag = a_imag,
                                     .b = b,
                                     .p = p,
                                     .c = c,
                                     .log_step = inv_dt,
                                     .d = skip};
  return reader.backend().PrepareSsm(parameters, reader.linear_dtype());
}

}  // namespace

absl::StatusOr<S4Mixer> S4Mixer::Load(const WeightsReader& reader, const H3Config& config,
                                      const std::string& prefix) {
  const int64_t d = config.d_model;
  const std::string o = prefix + "output_linear.0.";
  S4Mixer m;
  HIPPODROME_ASSIGN_OR_RETURN(m.ssm_, LoadS4(reader, config, prefix + "layer."));
  HIPPODROME_ASSIGN_OR_RETURN(m.w_o_, reader.Linear({o + "weight"}, 2 * d, d));
  HIPPODROME_ASSIGN_OR_RETURN(m.b_o_, reader.Row({o + "bias"}, 2 * d));
  return m;
}

void S4Mixer::Sequences(SequenceBackend& b, const ActivationRows& a, RecurrentState& state,
                        const SequenceParts& parts) const {
  b.SsmSequence(*ssm_, a.u, state, parts, a.o);  // o = SSM(u)
}

void S4Mixer::Steps(Backend& b, const ActivationRows& a, RecurrentState& state,
                    Tensor slots) const {
  b.SsmStep(*ssm_, a.u, state, slots, a.o);  // o = SSM(u)
}

void S4Mixer::ProjectOut(SequenceBackend& b, const ActivationRows& a) const {
  const int64_t d = a.u.cols;
  const Tensor z = a.stream.Cols(0, d), gate = a.stream.Cols(d, d);      // [rows, d]
  b.Activate(a.o, {.activation = Epilogue::Activation::kGeluErf}, a.o);  // o = gelu(o)
  b.Linear(a.o, *w_o_, {.bias = b_o_}, a.stream);                        // z, g = W_o o + b_o
  b.Activate(gate, {.activation = Epilogue::Activation::kSigmoid, .gate = z, .residual = a.r},
             a.r);  // r = r + z sigmoid(g)
}

}  // namespace hippodrome
