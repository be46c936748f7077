#include "engine/generation/prompt_scorer.h"

#include <algorithm>
#include <utility>

namespace hippodrome {

PromptScorer::PromptScorer(Backend& backend, int64_t vocab, Tensor logits)
    : b_(backend),
      logits_(logits),
      next_(backend.NewIndices(1, logits.rows)),
      scorer_(backend, vocab, logits.rows) {}

void PromptScorer::ComputeLogits(const PrefillChunk& chunk, int64_t first, int64_t count) {
  chunk.RowLogits(first, logits_.Rows(0, count));
  count_ = count;
}

void PromptScorer::Score(Sequence& s, int64_t next) {
  const Tensor tokens = next_.view.Cols(0, count_);
  b_.UploadIndices(s.Tokens(next, count_), tokens);
  const auto likeliest =
      std::min<int64_t>(s.request.likeliest.value_or(0), scorer_.MostLikeliest());
  scorer_.Score(logits_.Rows(0, count_), tokens, likeliest);
  for (TokenScores& scores : scorer_.Download(count_, likeliest)) {
    s.prompt_scores.push_back(std::move(scores));
  }
}

}  // namespace hippodrome
