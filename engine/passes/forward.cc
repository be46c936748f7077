#include "engine/passes/forward.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"

namespace hippodrome {
namespace {

absl::Status ValidateIds(const H3Config& config, std::span<const int32_t> ids) {
  if (ids.empty()) return InvalidArgument("a sequence without tokens");
  return CheckRange("token", ids, config.padded_vocab_size);
}

absl::Status ValidateLength(const H3Config& config, int64_t length) {
  const auto check = [&](int64_t most, const std::string& what) {
    if (length <= most) return absl::OkStatus();
    return absl::OutOfRangeError("a sequence of " + std::to_string(length) +
                                 " tokens exceeds the model's " + std::to_string(most) + what);
  };
  if (config.max_position_embeddings > 0) {
    HIPPODROME_RETURN_IF_ERROR(check(config.max_position_embeddings, " positions"));
  }
  if (!config.TakesWholeSequences()) return absl::OkStatus();
  return check(config.longest, ", ssm_cfg.l_max of its config.json");
}

absl::Status ValidateIds(const H3Config& config, std::span<const int32_t> ids,
                         const ForwardMode& mode) {
  HIPPODROME_RETURN_IF_ERROR(ValidateIds(config, ids));
  if (config.TakesWholeSequences() && (mode.step || mode.chunk > 0)) {
    return InvalidArgument(std::string("the mixer of this model, \"") + Name(config.mixer) +
                           "\", takes whole sequences: it has neither steps nor chunks");
  }
  return ValidateLength(config, static_cast<int64_t>(ids.size()));
}

void Emit(Backend& b, Tensor logits, int64_t position, const LogitsSink& sink) {
  std::vector<float> values(logits.rows * logits.cols);
  b.Download(logits, values);
  sink(position, values);
}

void ForwardPrefill(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                    int64_t chunk_tokens, const SequenceState& sequence, DecodeState& state,
                    const LogitsSink& sink) {
  PrefillChunk chunk(b, model);
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t most =
      std::min(chunk_tokens == 0 ? length : chunk_tokens, chunk.TokensAt(0, length));
  const OwnedTensor logits = b.NewTensor(most, model.config().padded_vocab_size);
  const PrefillPart part{.prompt = ids, .sequence = &sequence};
  for (int64_t start = 0; start < length; start += chunk.tokens()) {
    chunk.Begin({&part, 1}, start, std::min(most, chunk.TokensAt(start, length)));
    while (!chunk.done()) chunk.RunLayer(state);
    const Tensor rows = logits.view.Rows(0, chunk.tokens());
    chunk.AllLogits(rows);
    Emit(b, rows, start, sink);
  }
}

// The whole sequence in one chunk, and logits of as many positions at a time as the backend likes.
void ForwardWhole(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                  const SequenceState& sequence, DecodeState& state, const LogitsSink& sink) {
  const auto length = static_cast<int64_t>(ids.size());
  PrefillChunk chunk(b, model, {.grid = length, .rows = length});
  const PrefillPart part{.prompt = ids, .sequence = &sequence};
  chunk.Begin({&part, 1}, 0, length);
  while (!chunk.done()) chunk.RunLayer(state);
  const int64_t most = std::min(length, b.prefill_shape().grid);
  const OwnedTensor logits = b.NewTensor(most, model.config().padded_vocab_size);
  for (int64_t first = 0; first < length; first += most) {
    const Tensor rows = logits.view.Rows(0, std::min(most, length - first));
    chunk.RowLogits(first, rows);
    Emit(b, rows, first, sink);
  }
}

void ForwardStep(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                 const SequenceState& sequence, DecodeState& state, const LogitsSink& sink) {
  DecodeStep step(b, model, state, 1);
  for (int64_t t = 0; t < static_cast<int64_t>(ids.size()); ++t) {
    const StepToken token{.token = ids[t], .position = t, .sequence = &sequence};
    Emit(b, step.Logits({&token, 1}), t, sink);
  }
}

}  // namespace

absl::Status Forward(Backend& backend, const HybridH3& model, std::span<const int32_t> ids,
                     const ForwardMode& mode, const LogitsSink& sink) {
  HIPPODROME_RETURN_IF_ERROR(ValidateIds(model.config(), ids, mode));
  const bool has_attention = !model.config().attention_layers.empty();
  const int64_t pages = has_attention ? PagesFor(std::ssize(ids)) : 0;
  const auto state = model.NewState(backend, 1, pages, kPageTokens);
  const SequenceState sequence = *state->Reserve(pages);
  if (model.config().TakesWholeSequences()) {
    ForwardWhole(backend, model, ids, sequence, *state, sink);
  } else if (mode.step) {
    ForwardStep(backend, model, ids, sequence, *state, sink);
  } else {
    ForwardPrefill(backend, model, ids, mode.chunk, sequence, *state, sink);
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
