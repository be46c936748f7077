// Parts of prompts, and steps beside them, on their way through the layers.
#ifndef HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_
#define HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/index_matrices.h"
#include "engine/passes/pass_rows.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// Tokens of prompts, at most, beside which sequences that decode step in the same pass: so few that
// it takes no longer than a few steps (bench state: beside).
inline constexpr int64_t kSteppingRows = 64;

// Carries the residual stream of parts of any start and length between calls, so that other work
// may come between layers; and of sequences that step in the same pass. On processors what a part
// or a step gives does not depend on the others, bit for bit. Not thread-safe; backend and model
// must outlive it.
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
  // Tokens of all parts and steps together, at most.
  int64_t max_rows() const { return shape_.rows; }
  int64_t grid() const { return shape_.grid; }

  // Starts with these parts and steps, of different sequences. REQUIRES: at least one part, each
  // with tokens, all together at most max_rows().
  void Begin(std::span<const PrefillPart> parts, std::span<const StepToken> steps = {});
  // The state of this part's sequence is not touched any more, nor what it was copied to.
  void Drop(int64_t part);
  // Runs the next layer. REQUIRES: !done().
  void RunLayer(DecodeState& state);
  bool done() const { return next_layer_ == model_.layers(); }

  int64_t parts() const { return std::ssize(parts_); }
  // Of parts and steps.
  int64_t rows() const { return SequenceParts{parts_, {}}.rows() + steps_; }
  // The rows of a part: [FirstRow(part), FirstRow(part) + TokensOf(part)).
  int64_t FirstRow(int64_t part) const { return parts_[static_cast<size_t>(part)].first_row; }
  int64_t TokensOf(int64_t part) const { return parts_[static_cast<size_t>(part)].tokens; }

  // Logits after the last token of each part, then after each step, [parts + steps, padded V], or
  // after all tokens, [rows, padded V]. REQUIRES: done().
  void LastLogits(Tensor logits);
  void AllLogits(Tensor logits) const;
  // Those of some rows, kI32 [1, n], each in [0, rows()): [n, padded V].
  void RowLogits(Tensor rows, Tensor logits);

 private:
  // The matrices of indices: [1, rows], the rows of which logits are made, [1, steps], and where
  // there is attention [parts + steps, pages of the longest sequence].
  enum Indices : uint8_t { kIds, kPositions, kLastRows, kSlots, kPageTables };

  ActivationRows Rows() const { return activations_.Rows(rows()); }
  void AddPageTables(std::span<const PrefillPart> parts, std::span<const StepToken> steps);

  Backend& b_;
  const HybridH3& model_;
  PrefillShape shape_;
  Activations activations_;
  IndexMatrices indices_;
  OwnedTensor gathered_;  // [most so far, d], rows of which logits are made
  std::vector<SequencePart> parts_;
  int64_t steps_ = 0;  // behind the rows of the parts
  std::vector<StateCapture> captures_;
  int64_t next_layer_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_PREFILL_CHUNK_H_
