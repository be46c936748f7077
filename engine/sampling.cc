#include "engine/sampling.h"

#include <fmt/format.h>

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
  return SamplingParameters{
      .temperature = t, .top_k = static_cast<int32_t>(k), .top_p = p, .min_p = m, .seed = f.seed};
}

}  // namespace hippodrome
