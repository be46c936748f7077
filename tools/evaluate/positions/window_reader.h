// Reads windows of a text with a decoder: how likely each token is, and what reading it costs.
#ifndef HIPPODROME_TOOLS_EVALUATE_POSITIONS_WINDOW_READER_H_
#define HIPPODROME_TOOLS_EVALUATE_POSITIONS_WINDOW_READER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/passes/token_scores.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

struct WindowOptions {
  int64_t length = 0;            // tokens of a window at most, 1 or more
  int64_t attention_window = 0;  // as that of GeneratorOptions
  DType h3_state = DType::kF32;  // the same
};

struct ScoredWindow {
  std::vector<double> nll;  // -ln p(token | those before it in the window), in nats
  // For each token that was read, an equal part of what its chunk took in the layers: the head,
  // which a prompt needs for its last token alone, is left out.
  std::vector<double> seconds;
};

// Takes in chunks of the serving grid, so that no more than one chunk's logits are there at once.
// Not thread-safe; backend and model must outlive it.
class WindowReader {
 public:
  // Errors: kOutOfRange for more tokens than the model has positions; kInvalidArgument for an
  // attention window of a model without attention; those of HybridH3::CheckH3State().
  static absl::StatusOr<std::unique_ptr<WindowReader>> Make(Backend& backend, const HybridH3& model,
                                                            const WindowOptions& options);

  // Reads all of `ids` but the last one from a zero state. Scores the successors of those from
  // place `first` on: nll[i] is that of ids[first + i + 1]. Errors: kInvalidArgument for ids out of
  // [0, V). REQUIRES: 2 <= ids.size() <= length + 1, first in [0, ids.size() - 1).
  absl::StatusOr<ScoredWindow> Read(std::span<const int32_t> ids, int64_t first);

  // What the state of a sequence takes after `position` tokens: the recurrent part, which does not
  // grow, and the pages of keys and values that the next token sees.
  int64_t StateBytes(int64_t position) const;

 private:
  WindowReader(Backend& backend, const HybridH3& model, const WindowOptions& options);

  int64_t PagesOf(int64_t tokens) const;
  // Appends the scores of `targets`, the successors of the chunk's last rows.
  void ScoreRows(std::span<const int32_t> targets, std::vector<double>& nll);

  Backend& b_;
  const HybridH3& model_;
  int64_t attention_window_;
  PrefillChunk chunk_;
  int64_t most_rows_;    // of a chunk
  OwnedTensor logits_;   // [most rows, padded V]
  OwnedTensor targets_;  // kI32 [1, most rows]
  TokenScorer scorer_;
  std::unique_ptr<DecodeState> state_;  // of one sequence
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_POSITIONS_WINDOW_READER_H_
