#include "engine/passes/forward.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
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

// As LogitsSink, with logits where the backend has them.
using RowsSink = std::function<void(int64_t first_position, Tensor logits)>;

void ForwardPrefill(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                    int64_t chunk_tokens, const SequenceState& sequence, DecodeState& state,
                    const RowsSink& sink) {
  PrefillChunk chunk(b, model);
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t most =
      std::min(chunk_tokens == 0 ? length : chunk_tokens, chunk.TokensAt(0, length));
  const OwnedTensor logits = b.NewTensor(most, model.config().padded_vocab_size);
  for (int64_t start = 0; start < length; start += chunk.rows()) {
    const int64_t tokens = std::min(most, chunk.TokensAt(start, length));
    const PrefillPart part{
        .tokens = ids.subspan(start, tokens), .start = start, .sequence = &sequence};
    chunk.Begin({&part, 1});
    while (!chunk.done()) chunk.RunLayer(state);
    const Tensor rows = logits.view.Rows(0, tokens);
    chunk.AllLogits(rows);
    sink(start, rows);
  }
}

// The whole sequence in one chunk, and logits of as many positions at a time as the backend likes.
void ForwardWhole(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                  const SequenceState& sequence, DecodeState& state, const RowsSink& sink) {
  const auto length = static_cast<int64_t>(ids.size());
  PrefillChunk chunk(b, model, {.grid = length, .rows = length});
  const PrefillPart part{.tokens = ids, .sequence = &sequence};
  chunk.Begin({&part, 1});
  while (!chunk.done()) chunk.RunLayer(state);
  const int64_t most = std::min(length, b.prefill_shape().grid);
  const OwnedTensor logits = b.NewTensor(most, model.config().padded_vocab_size);
  for (int64_t first = 0; first < length; first += most) {
    const Tensor rows = logits.view.Rows(0, std::min(most, length - first));
    chunk.RowLogits(first, rows);
    sink(first, rows);
  }
}

void ForwardStep(Backend& b, const HybridH3& model, std::span<const int32_t> ids,
                 const SequenceState& sequence, DecodeState& state, const RowsSink& sink) {
  DecodeStep step(b, model, state, 1);
  for (int64_t t = 0; t < static_cast<int64_t>(ids.size()); ++t) {
    const StepToken token{.token = ids[t], .position = t, .sequence = &sequence};
    sink(t, step.Logits({&token, 1}));
  }
}

absl::Status ForwardRows(Backend& backend, const HybridH3& model, std::span<const int32_t> ids,
                         const ForwardMode& mode, const RowsSink& sink) {
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

}  // namespace

absl::Status Forward(Backend& backend, const HybridH3& model, std::span<const int32_t> ids,
                     const ForwardMode& mode, const LogitsSink& sink) {
  return ForwardRows(backend, model, ids, mode, [&](int64_t first, Tensor logits) {
    std::vector<float> values(logits.rows * logits.cols);
    backend.Download(logits, values);
    sink(first, values);
  });
}

absl::StatusOr<std::vector<TokenScores>> ForwardScores(Backend& backend, const HybridH3& model,
                                                       std::span<const int32_t> ids,
                                                       int64_t likeliest) {
  const int64_t vocab = model.config().vocab_size;
  HIPPODROME_RETURN_IF_ERROR(CheckRange("token", ids, vocab));
  const auto length = static_cast<int64_t>(ids.size());
  TokenScorer scorer(backend, vocab, std::max<int64_t>(1, length));
  const int64_t columns = std::min(likeliest, scorer.MostLikeliest());
  const OwnedTensor next = backend.NewIndices(1, std::max<int64_t>(1, length));
  std::vector<TokenScores> scores(1);  // of the first token
  // The last row has no token to score.
  const auto sink = [&](int64_t first, Tensor logits) {
    const int64_t rows = std::min(logits.rows, length - 1 - first);
    if (rows < 1) return;
    const Tensor targets = next.view.Cols(0, rows);
    backend.UploadIndices(ids.subspan(first + 1, rows), targets);
    scorer.Score(logits.Rows(0, rows), targets, columns);
    for (TokenScores& score : scorer.Download(rows, columns)) scores.push_back(std::move(score));
  };
  HIPPODROME_RETURN_IF_ERROR(ForwardRows(backend, model, ids, ForwardMode{}, sink));
  return scores;
}

}  // namespace hippodrome
