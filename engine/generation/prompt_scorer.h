// The log probabilities of the tokens of prompts.
#ifndef HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_
#define HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_

#include <cstdint>

#include "engine/generation/sequence.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/passes/token_scores.h"
#include "kernels/backend.h"

namespace hippodrome {

// Scores tokens by the rows of a chunk before them, some rows at a time, so that no prompt needs
// logits of all of its tokens at once. Not thread-safe; the backend must outlive it.
class PromptScorer {
 public:
  // `logits`: scratch [rows at a time, padded V]; of tokens in [0, vocab).
  PromptScorer(Backend& backend, int64_t vocab, Tensor logits);

  int64_t max_rows() const { return logits_.rows; }
  // The logits of rows [first, first + count) of `chunk`, which stay while the scratch does.
  // REQUIRES: chunk.done(), count <= max_rows().
  void ComputeLogits(const PrefillChunk& chunk, int64_t first, int64_t count);
  // Appends to the prompt's scores those of its tokens from position `next` on, one for each of
  // these rows, the first of which is of the token before `next`.
  void Score(Sequence& s, int64_t next);

 private:
  Backend& b_;
  Tensor logits_;
  OwnedTensor next_;  // kI32 [1, max_rows], the tokens that are scored
  TokenScorer scorer_;
  int64_t count_ = 0;  // of rows that are there
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_PROMPT_SCORER_H_
