#include "engine/sampling.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check_range.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/parameter_ranges.h"

namespace hippodrome {

absl::StatusOr<SamplingParameters> ToSamplingParameters(const SamplingFields& fields) {
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kTemperatureRange, fields.temperature));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kTopPRange, fields.top_p));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kTopKRange, fields.top_k));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kMinPRange, fields.min_p));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kTypicalPRange, fields.typical_p));
  return SamplingParameters{.temperature = fields.temperature,
                            .top_k = static_cast<int32_t>(fields.top_k),
                            .top_p = fields.top_p,
                            .min_p = fields.min_p,
                            .typical_p = fields.typical_p,
                            .seed = fields.seed};
}

absl::Status CheckLogitChanges(const LogitChanges& changes, int64_t vocab_size) {
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kRepetitionPenaltyRange, changes.repetition_penalty));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kPresencePenaltyRange, changes.presence_penalty));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kFrequencyPenaltyRange, changes.frequency_penalty));
  std::vector<int32_t> tokens;
  for (const auto& [token, bias] : changes.bias) {
    tokens.push_back(token);
    HIPPODROME_RETURN_IF_ERROR(CheckParameter(kLogitBiasRange, bias));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("logit_bias", tokens, vocab_size));
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice == tokens.end()) return absl::OkStatus();
  return FieldError("logit_bias", fmt::format("token {} comes twice", *twice));
}

}  // namespace hippodrome
