#include "engine/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check_range.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int64_t kLargestTopK = int64_t{1} << 30;

// NaN is in no range.
template <typename Value>
absl::Status CheckField(const char* field, Value value, bool in_range, const char* range) {
  if (in_range) return absl::OkStatus();
  return FieldError(field, fmt::format("{} is not in {}", value, range));
}

}  // namespace

absl::StatusOr<SamplingParameters> ToSamplingParameters(const SamplingFields& f) {
  const float t = f.temperature, p = f.top_p, m = f.min_p;
  const int64_t k = f.top_k;
  HIPPODROME_RETURN_IF_ERROR(CheckField("temperature", t, t >= 0 && t <= 100, "[0, 100]"));
  HIPPODROME_RETURN_IF_ERROR(CheckField("top_p", p, p > 0 && p <= 1, "(0, 1]"));
  HIPPODROME_RETURN_IF_ERROR(
      CheckField("top_k", k, k >= 0 && k <= kLargestTopK, "[0, 1073741824]"));
  HIPPODROME_RETURN_IF_ERROR(CheckField("min_p", m, m >= 0 && m <= 1, "[0, 1]"));
  HIPPODROME_RETURN_IF_ERROR(
      CheckField("typical_p", f.typical_p, f.typical_p > 0 && f.typical_p <= 1, "(0, 1]"));
  return SamplingParameters{.temperature = t,
                            .top_k = static_cast<int32_t>(k),
                            .top_p = p,
                            .min_p = m,
                            .typical_p = f.typical_p,
                            .seed = f.seed};
}

absl::Status CheckLogitChanges(const LogitChanges& changes, int64_t vocab_size) {
  const float r = changes.repetition_penalty;
  HIPPODROME_RETURN_IF_ERROR(
      CheckField("repetition_penalty", r, r >= 0.01f && r <= 100, "[0.01, 100]"));
  for (const auto& [field, penalty] : {std::pair("presence_penalty", changes.presence_penalty),
                                       std::pair("frequency_penalty", changes.frequency_penalty)}) {
    HIPPODROME_RETURN_IF_ERROR(
        CheckField(field, penalty, penalty >= -2 && penalty <= 2, "[-2, 2]"));
  }
  std::vector<int32_t> tokens;
  for (const auto& [token, bias] : changes.bias) {
    tokens.push_back(token);
    HIPPODROME_RETURN_IF_ERROR(
        CheckField("logit_bias", bias, bias >= -100 && bias <= 100, "[-100, 100]"));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("logit_bias", tokens, vocab_size));
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice == tokens.end()) return absl::OkStatus();
  return FieldError("logit_bias", fmt::format("token {} comes twice", *twice));
}

}  // namespace hippodrome
