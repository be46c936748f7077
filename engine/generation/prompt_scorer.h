// The log probabilities of the tokens of prompts.
#ifndef HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_
#define HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_

#include <cstdint>
#include <span>

#include "engine/generation/sequence.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/passes/token_scores.h"
#include "kernels/backend.h"

namespace hippodrome {

// Scores tokens by the rows of a chunk before them, some rows at a time, so that no prompt needs
// logits of all of its tokens at once; rows of several prompts together, for the head is read once
// for all. Not thread-safe; the backend must outlive it.
class PromptScorer {
 public:
  // `logits`: scratch [rows at a time, padded V]; of tokens in [0, vocab).
  PromptScorer(Backend& backend, int64_t vocab, Tensor logits);

  int64_t max_rows() const { return logits_.rows; }
  // The logits of these rows of `chunk`, which stay while the scratch does. REQUIRES: chunk.done(),
  // 1 to max_rows() rows.
  void ComputeLogits(PrefillChunk& chunk, std::span<const int32_t> rows);
  // Appends to the prompt's scores those of its tokens at positions [next, next + count) by as many
  // of these logits from `first` on.
  void Score(Sequence& s, int64_t next, int64_t first, int64_t count);

 private:
  Backend& b_;
  Tensor logits_;
  OwnedTensor indices_;  // kI32 [1, max_rows], of rows, then of the tokens that are scored
  TokenScorer scorer_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_
