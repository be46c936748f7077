#include "engine/generation/generation_limits.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/base/check_range.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/generation/adjusted_tokens.h"
#include "engine/models/h3/hybrid_h3.h"

namespace hippodrome {
namespace {

// Positions are indices of 32 bits in a backend: half of them are for new tokens.
constexpr int64_t kMostTokensBefore = INT32_MAX / 2;

std::string NeverFits(const Footprint& cost, const Footprint& capacity) {
  return "the request needs " + std::to_string(cost.bytes) + " bytes of state (" +
         std::to_string(cost.pages) + " key/value pages of " + std::to_string(kPageTokens) +
         " tokens), but the server has " + std::to_string(capacity.bytes) + " bytes (" +
         std::to_string(capacity.pages) + " pages) in all";
}

absl::Status CheckWithin(const char* field, int64_t value, int64_t most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return FieldError(field, std::to_string(value) + " is not in [0, " + std::to_string(most) + "]");
}

StateLayout LayoutOf(const HybridH3& model, const DecodeState& state) {
  const H3Config& config = model.config();
  StateLayout layout{.model = model.fingerprint(),
                     .vocab_size = config.vocab_size,
                     .longest = config.max_position_embeddings,
                     .window = state.window()};
  for (const auto& recurrent : state.layers().recurrent) {
    LayerLayout& layer = layout.layers.emplace_back();
    if (recurrent != nullptr) {
      layer.arrays = recurrent->arrays();
    } else {
      layer.row_width = config.d_model;
    }
  }
  return layout;
}

}  // namespace

int64_t TokensBefore(const GenerationRequest& request) {
  const int64_t prompt = std::ssize(request.prompt);
  if (!request.start) return prompt;
  const int64_t limit = std::numeric_limits<int64_t>::max() - prompt - 1;
  const int64_t in_state = std::clamp<int64_t>(request.start->position, 0, limit);
  return in_state + (request.start->last_token ? 1 : 0) + prompt;
}

std::string PendingText(const GenerationRequest& request) {
  return request.start == nullptr || !request.prompt.empty() ? "" : request.start->pending_text;
}

GenerationLimits::GenerationLimits(const HybridH3& model, const DecodeState& state,
                                   int64_t sequences, int64_t chunk)
    : config_(model.config()),
      layout_(LayoutOf(model, state)),
      sequences_(sequences),
      chunk_(chunk),
      pages_(state.pages()),
      slot_bytes_(state.bytes_per_slot()),
      page_bytes_(state.bytes_per_page()) {}

Footprint GenerationLimits::Bytes(int64_t slots, int64_t pages) const {
  const int64_t limit = std::numeric_limits<int64_t>::max();
  const int64_t of_slots = slots * slot_bytes_;
  const bool saturates = page_bytes_ > 0 && pages > (limit - of_slots) / page_bytes_;
  return {slots, pages, saturates ? limit : of_slots + pages * page_bytes_};
}

Footprint GenerationLimits::Cost(int64_t tokens_before, int64_t max_tokens) const {
  if (config_.attention_layers.empty()) return Bytes(1, 0);
  // The last new token is never fed back, so it needs no row.
  const int64_t limit = std::numeric_limits<int64_t>::max() - kPageTokens;
  const int64_t rows = max_tokens > limit - tokens_before ? limit : tokens_before + max_tokens - 1;
  if (layout_.window == 0) return Bytes(1, PagesFor(rows));
  // What a chunk sees from its first token on, and itself. Blocks begin up to so many rows early.
  const int64_t early = kWindowBlock - 1;
  const int64_t at_once = chunk_ + early - 1;
  const int64_t most = layout_.window > limit - at_once ? limit : layout_.window + at_once;
  return Bytes(1, PagesFor(std::min(rows, most)));
}

absl::Status GenerationLimits::ValidateStart(const GenerationRequest& request) const {
  if (!request.start) {
    return request.prompt.empty() ? InvalidArgument("the prompt has no tokens") : absl::OkStatus();
  }
  HIPPODROME_RETURN_IF_ERROR(CheckState(*request.start, layout_));
  if (request.prompt.empty() && !request.start->last_token) {
    return InvalidArgument(
        "the prompt has no tokens, and the state has no last token to go on from");
  }
  if (request.changes.penalises() && request.start->tokens.empty()) {
    return InvalidArgument("penalties count tokens, and the state was saved without its tokens");
  }
  return absl::OkStatus();
}

absl::Status GenerationLimits::ValidateMarks(const GenerationRequest& request) const {
  if (std::ssize(request.cache_marks) > kMaxCacheMarks) {
    return FieldError("cache_marks", std::to_string(request.cache_marks.size()) +
                                         " marks, expected at most " +
                                         std::to_string(kMaxCacheMarks));
  }
  for (const int64_t mark : request.cache_marks) {
    if (mark >= 1 && mark <= std::ssize(request.prompt)) continue;
    return FieldError("cache_marks", std::to_string(mark) + " is not in [1, " +
                                         std::to_string(request.prompt.size()) +
                                         "], the tokens of the prompt");
  }
  return absl::OkStatus();
}

absl::Status GenerationLimits::ValidateScoring(const GenerationRequest& request) const {
  const int64_t last = std::max<int64_t>(0, std::ssize(request.prompt) - 1);
  HIPPODROME_RETURN_IF_ERROR(CheckWithin("score_from", request.score_from, last));
  const bool may_share = request.start == nullptr && request.score_prompt;
  return CheckWithin("shared_tokens", request.shared_tokens, may_share ? request.score_from : 0);
}

absl::Status GenerationLimits::ValidateCheckpoints(const GenerationRequest& request) const {
  const int64_t interval = request.checkpoint_interval;
  if (interval > 0 && layout_.window > 0) {
    return FieldError(
        "checkpoint_interval",
        std::to_string(interval) +
            ", expected 0: the attention window drops the rows that earlier positions need");
  }
  if (interval >= 0 && interval % kCaptureTokens == 0) return absl::OkStatus();
  return FieldError("checkpoint_interval", std::to_string(interval) + ", expected a multiple of " +
                                               std::to_string(kCaptureTokens));
}

absl::Status GenerationLimits::ValidateLength(const GenerationRequest& request) const {
  const int64_t before = TokensBefore(request);
  if (config_.max_position_embeddings > 0 &&
      request.max_tokens - 1 > config_.max_position_embeddings - before) {
    return absl::OutOfRangeError(
        (request.start ? "a state and a prompt of " : "a prompt of ") + std::to_string(before) +
        " tokens and " + std::to_string(request.max_tokens) + " new ones exceed the model's " +
        std::to_string(config_.max_position_embeddings) + " positions");
  }
  if (before > kMostTokensBefore) {
    return absl::OutOfRangeError(std::to_string(before) + " tokens before the first new one, but " +
                                 std::to_string(kMostTokensBefore) + " are the most");
  }
  const Footprint cost = Cost(before, request.max_tokens);
  if (cost.pages > pages_) {
    return absl::OutOfRangeError(NeverFits(cost, capacity()));
  }
  return absl::OkStatus();
}

absl::Status GenerationLimits::Validate(const GenerationRequest& request) const {
  if (request.max_tokens < 1) return InvalidArgument("max_tokens must be at least 1");
  HIPPODROME_RETURN_IF_ERROR(ValidateStart(request));
  HIPPODROME_RETURN_IF_ERROR(ValidateMarks(request));
  HIPPODROME_RETURN_IF_ERROR(ValidateScoring(request));
  HIPPODROME_RETURN_IF_ERROR(ValidateCheckpoints(request));
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("prompt", request.prompt, config_.vocab_size));
  HIPPODROME_RETURN_IF_ERROR(CheckLogitChanges(request.changes, config_.vocab_size));
  if (const int32_t k = request.likeliest.value_or(0); k < 0 || k > kMaxLikeliest) {
    return FieldError("logprobs",
                      std::to_string(k) + " is not in [0, " + std::to_string(kMaxLikeliest) + "]");
  }
  return ValidateLength(request);
}

}  // namespace hippodrome
