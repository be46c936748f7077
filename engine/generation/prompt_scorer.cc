#include "engine/generation/prompt_scorer.h"

#include <algorithm>
#include <utility>

namespace hippodrome {

PromptScorer::PromptScorer(Backend& backend, int64_t vocab, Tensor logits)
    : b_(backend),
      logits_(logits),
      indices_(backend.NewIndices(1, logits.rows)),
      scorer_(backend, vocab, logits.rows) {}

void PromptScorer::ComputeLogits(PrefillChunk& chunk, std::span<const int32_t> rows) {
  const Tensor indices = indices_.view.Cols(0, std::ssize(rows));
  b_.UploadIndices(rows, indices);
  chunk.RowLogits(indices, logits_.Rows(0, std::ssize(rows)));
}

void PromptScorer::Score(Sequence& s, int64_t next, int64_t first, int64_t count) {
  const Tensor tokens = indices_.view.Cols(0, count);
  b_.UploadIndices(s.Tokens(next, count), tokens);
  const auto likeliest =
      std::min<int64_t>(s.request.likeliest.value_or(0), scorer_.MostLikeliest());
  scorer_.Score(logits_.Rows(first, count), tokens, likeliest);
  for (TokenScores& scores : scorer_.Download(count, likeliest)) {
    s.prompt_scores.push_back(std::move(scores));
  }
}

}  // namespace hippodrome
