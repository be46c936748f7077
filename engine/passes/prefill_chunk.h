// Chunks of prompts on their way through the layers.
#ifndef HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_
#define HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/index_matrix.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// A prompt and the state of its sequence.
struct PrefillPart {
  std::span<const int32_t> prompt;  // ids in [0, padded V)
  const SequenceState* sequence = nullptr;
};

// Carries the residual stream of chunks of equal length and start between calls, so that other work
// may come between layers. Not thread-safe; backend and model must outlive it.
class PrefillChunk {
 public:
  PrefillChunk(Backend& backend, const HybridH3& model)
      : PrefillChunk(backend, model, backend.prefill_shape()) {}
  // In another shape than the backend likes.
  PrefillChunk(Backend& backend, const HybridH3& model, const PrefillShape& shape);

  // Tokens of the chunk at `start` of a prompt of `prompt_tokens`: up to the next absolute multiple
  // of the backend's grid, never by load, so that a prompt's state does not depend on what runs
  // beside it.
  int64_t TokensAt(int64_t start, int64_t prompt_tokens) const;
  // Chunks of `tokens` tokens that go together.
  int64_t MaxParts(int64_t tokens) const { return shape_.rows / tokens; }
  int64_t grid() const { return shape_.grid; }

  // Starts with the tokens [start, start + tokens) of every prompt. REQUIRES: 1 <= parts.size() <=
  // MaxParts(tokens), tokens <= TokensAt(start, prompt size).
  void Begin(std::span<const PrefillPart> parts, int64_t start, int64_t tokens);
  // The state of this part's sequence is not touched any more.
  void Drop(int64_t part);
  // Runs the next layer. REQUIRES: !done().
  void RunLayer(DecodeState& state);
  bool done() const { return next_layer_ == model_.layers(); }
  int64_t tokens() const { return tokens_; }

  // Logits after the last token of each part, [parts, padded V], or after all of them, [parts *
  // tokens, padded V]. REQUIRES: done().
  void LastLogits(Tensor logits) const;
  void AllLogits(Tensor logits) const { RowLogits(0, logits); }
  // Those of the rows from `first`, [rows, padded V].
  void RowLogits(int64_t first, Tensor logits) const;

 private:
  int64_t parts() const { return static_cast<int64_t>(slots_.size()); }
  ActivationRows Rows() const { return activations_.Rows(parts() * tokens_); }
  void UploadWhere();

  Backend& b_;
  const HybridH3& model_;
  PrefillShape shape_;
  Activations activations_;
  OwnedTensor indices_;               // kI32 [3, rows]: ids, positions, slots
  IndexMatrix page_tables_;           // [parts, pages of the longest sequence]
  std::vector<int32_t> slots_;        // by part
  std::vector<int32_t> page_values_;  // of page_tables_
  PrefillRows where_;
  int64_t tokens_ = 0;
  int64_t next_layer_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_
