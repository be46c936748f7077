#include "engine/models/h3/state_space.h"

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {

H3Parameters StateSpaceParameters::View(const H3Config& config) const {
  return {.d_model = config.d_model,
          .head_dim = config.head_dim,
          .d_state = config.d_state,
          .n_ssm = config.n_ssm,
          .discretization = config.discretization,
          .output_order = config.output_order,
          .shift_b = shift_b,
          .shift_c = shift_c,
          .shift_d = shift_d,
          .d = d,
          .log_dt = log_dt,
          .inv_a_real = inv_a_real,
          .a_imag = a_imag,
          .b = b,
          .c = c};
}

absl::StatusOr<StateSpaceParameters> ReadStateSpace(WeightsSource& source, const H3Config& config,
                                                    const std::string& prefix) {
  const int64_t d = config.d_model;
  const int64_t heads = config.heads();
  const int64_t n = config.d_state;
  const int64_t modes = n / 2;
  const int64_t s = config.n_ssm;
  StateSpaceParameters p;
  struct Field {
    const char* name;
    std::vector<int64_t> shape;
    HostFloats* values;
  };
  const Field fields[] = {
      {"ssm_k_kernel.kernel.B", {d, n}, &p.shift_b},
      {"ssm_k_kernel.kernel.C", {1, d, n}, &p.shift_c},
      {"ssm_k_D", {d}, &p.shift_d},
      {"D", {heads}, &p.d},
      {"kernel.kernel.log_dt", {heads}, &p.log_dt},
      {"kernel.kernel.inv_A_real", {s, modes}, &p.inv_a_real},
      {"kernel.kernel.A_imag", {s, modes}, &p.a_imag},
      {"kernel.kernel.B", {s, modes, 2}, &p.b},
      {"kernel.kernel.C", {1, heads, modes, 2}, &p.c},
  };
  for (const Field& field : fields) {
    HIPPODROME_ASSIGN_OR_RETURN(*field.values,
                                ReadFinite(source, prefix + field.name, field.shape));
  }
  return p;
}

}  // namespace hippodrome
