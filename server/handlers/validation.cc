#include "server/handlers/validation.h"

#include <fmt/format.h>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

// NaN is in no range.
absl::Status CheckNumber(const char* field, float value, bool in_range, const char* range) {
  if (in_range) return absl::OkStatus();
  return FieldError(field, fmt::format("{} is not in {}", value, range));
}

absl::Status CheckInteger(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return FieldError(field, fmt::format("{} is not in [{}, {}]", value, least, most));
}

absl::Status CheckSampling(const v1::GenerateRequest& r) {
  const float t = r.temperature();
  const float p = r.top_p();
  const float m = r.min_p();
  if (r.has_temperature()) {
    HIPPODROME_RETURN_IF_ERROR(CheckNumber("temperature", t, t >= 0 && t <= 100, "[0, 100]"));
  }
  if (r.has_top_p()) {
    HIPPODROME_RETURN_IF_ERROR(CheckNumber("top_p", p, p > 0 && p <= 1, "(0, 1]"));
  }
  if (r.has_top_k()) {
    HIPPODROME_RETURN_IF_ERROR(CheckInteger("top_k", r.top_k(), 0, int64_t{1} << 30));
  }
  if (r.has_min_p()) {
    HIPPODROME_RETURN_IF_ERROR(CheckNumber("min_p", m, m >= 0 && m <= 1, "[0, 1]"));
  }
  return absl::OkStatus();
}

absl::Status CheckStops(const v1::GenerateRequest& request, const RequestLimits& limits) {
  if (request.stop_size() > limits.max_stops) {
    return FieldError("stop", fmt::format("{} stop strings, expected at most {}",
                                          request.stop_size(), limits.max_stops));
  }
  for (const std::string& stop : request.stop()) {
    if (stop.empty() || static_cast<int64_t>(stop.size()) > limits.max_stop_bytes) {
      return FieldError("stop", fmt::format("a stop string of {} bytes, expected 1 to {}",
                                            stop.size(), limits.max_stop_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const v1::GenerateRequest& request) {
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      if (request.text().empty()) return FieldError("prompt", "the text is empty");
      return absl::OkStatus();
    case v1::GenerateRequest::kTokenIds:
      if (request.token_ids().ids().empty()) return FieldError("prompt", "there are no token ids");
      return absl::OkStatus();
    default:
      return FieldError("prompt", "expected a text or token ids");
  }
}

}  // namespace

absl::Status ValidateRequest(const v1::GenerateRequest& request, const RequestLimits& limits) {
  HIPPODROME_RETURN_IF_ERROR(CheckPrompt(request));
  if (request.has_max_tokens()) {
    HIPPODROME_RETURN_IF_ERROR(
        CheckInteger("max_tokens", request.max_tokens(), 1, limits.max_tokens));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckSampling(request));
  return CheckStops(request, limits);
}

absl::Status ValidateTokenIds(std::span<const int32_t> ids, int64_t vocab_size,
                              const std::string& field) {
  const absl::Status status = CheckRange("token", ids, vocab_size);
  return status.ok() ? status : FieldError(field, Message(status));
}

}  // namespace hippodrome
