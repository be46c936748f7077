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
  HIPPODROME_RETURN_IF_ERROR(CheckRange("token", ids, config.padded_vocab_size));
  const int64_t positions = config.max_position_embeddings;
  if (positions == 0 || std::ssize(ids) <= positions) return absl::OkStatus();
  return absl::OutOfRangeError("a sequence of " + std::to_string(ids.size()) +
                               " tokens exceeds the model's " + std::to_string(positions) +
                               " positions");
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
  const OwnedTensor logits = model.NewLogits(b, most);
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
  HIPPODROME_RETURN_IF_ERROR(ValidateIds(model.config(), ids));
  HIPPODROME_RETURN_IF_ERROR(model.CheckH3State(backend, mode.h3_state));
  const bool has_attention = !model.config().attention_layers.empty();
  const int64_t pages = has_attention ? PagesFor(std::ssize(ids)) : 0;
  const auto state = model.NewState(backend, 1, pages, kPageTokens, 0, mode.h3_state);
  const SequenceState sequence = *state->Reserve(pages);
  if (mode.step) {
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
