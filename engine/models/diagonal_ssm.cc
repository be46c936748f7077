#include "engine/models/diagonal_ssm.h"

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {

DiagonalSsmParameters DiagonalSsm::View(const BigsConfig& config) const {
  return {.channels = config.hidden_size,
          .heads = config.num_ssm_heads,
          .modes = config.num_ssm,
          .a_real = a_real,
          .a_imag = a_imag,
          .c = c,
          .log_step = log_step,
          .d = d};
}

absl::StatusOr<DiagonalSsm> ReadDiagonalSsm(WeightsSource& source, const BigsConfig& config,
                                            const std::string& prefix) {
  // A single head has no axis of its own in files.
  const auto shape = [&](std::vector<int64_t> of_head) {
    if (config.num_ssm_heads > 1) of_head.insert(of_head.begin(), config.num_ssm_heads);
    return of_head;
  };
  const int64_t n = config.num_ssm;
  DiagonalSsm ssm;
  struct Field {
    const char* name;
    std::vector<int64_t> shape;
    HostFloats* values;
  };
  const Field fields[] = {
      {"kernel.A_re", shape({n}), &ssm.a_real},
      {"kernel.A_im", shape({n}), &ssm.a_imag},
      {"kernel.C", shape({n, 2}), &ssm.c},
      {"kernel.log_step", shape({1}), &ssm.log_step},
      {"D", shape({1}), &ssm.d},
  };
  for (const Field& field : fields) {
    HIPPODROME_ASSIGN_OR_RETURN(*field.values,
                                ReadFinite(source, prefix + field.name, field.shape));
  }
  return ssm;
}

absl::StatusOr<std::unique_ptr<LongConvWeights>> LoadDiagonalSsm(const WeightsReader& reader,
                                                                 const BigsConfig& config,
                                                                 const std::string& prefix) {
  HIPPODROME_ASSIGN_OR_RETURN(const DiagonalSsm ssm,
                              ReadDiagonalSsm(reader.source(), config, prefix));
  return reader.backend().PrepareLongConv(ssm.View(config), config.max_position_embeddings,
                                          reader.linear_dtype());
}

}  // namespace hippodrome
