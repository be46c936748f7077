// One chunk of a prompt on its way through the layers.
#ifndef HIPPODROME_ENGINE_PREFILL_CHUNK_H_
#define HIPPODROME_ENGINE_PREFILL_CHUNK_H_

#include <cstdint>
#include <span>

#include "engine/decode_state.h"
#include "engine/models/hybrid_h3.h"
#include "kernels/backend.h"

namespace hippodrome {

// Carries the residual stream of a chunk between calls, so that other work may come between layers.
// Not thread-safe; backend and model must outlive it.
class PrefillChunk {
 public:
  // Prompts are cut at absolute positions that are multiples of this, never by load, so that a
  // prompt's state has the same bits whatever runs beside it. 512 rows keep matrix products at
  // their peak rate and fit one transform of the convolution.
  static constexpr int64_t kGrid = 512;

  PrefillChunk(Backend& backend, const HybridH3& model);

  // Starts the chunk of `prompt` at position `start`: up to the next multiple of the grid, at most
  // `max_rows` tokens. REQUIRES: start < prompt.size(), 1 <= max_rows <= kGrid.
  void Begin(std::span<const int32_t> prompt, int64_t start, const SequenceState& sequence,
             int64_t max_rows = kGrid);
  // Runs the next layer. REQUIRES: !done().
  void RunLayer(DecodeState& state);
  bool done() const { return next_layer_ == model_.layers(); }
  int64_t rows() const { return rows_; }

  // Logits after the last token, [1, padded V], or after all of them, [rows, padded V].
  // REQUIRES: done().
  void LastLogits(Tensor logits) const;
  void AllLogits(Tensor logits) const;

 private:
  Backend& b_;
  const HybridH3& model_;
  Activations activations_;
  OwnedTensor ids_, positions_;  // kI32 [1, kGrid]
  OwnedTensor page_table_;       // kI32 [1, pages of the sequence]
  PrefillRows where_;
  int64_t rows_ = 0;
  int64_t next_layer_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PREFILL_CHUNK_H_
