// One step of the recurrence for a batch of sequences.
#ifndef HIPPODROME_ENGINE_DECODE_STEP_H_
#define HIPPODROME_ENGINE_DECODE_STEP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decode_state.h"
#include "engine/models/hybrid_h3.h"
#include "kernels/backend.h"

namespace hippodrome {

// The next token of one sequence.
struct StepToken {
  int32_t token = 0;
  int64_t position = 0;  // tokens of the sequence before it
  const SequenceState* sequence = nullptr;
};

// Owns the activations and index arrays of a step. Not thread-safe; backend and model must outlive
// it.
class DecodeStep {
 public:
  DecodeStep(Backend& backend, const HybridH3& model, int64_t max_rows);

  // Feeds the tokens, of different sequences, and gives the logits after them: [tokens.size(),
  // padded V], valid until the next call. REQUIRES: 1 <= tokens.size() <= max_rows.
  Tensor Run(std::span<const StepToken> tokens, DecodeState& state);

 private:
  Tensor UploadPageTables(std::span<const StepToken> tokens);

  Backend& b_;
  const HybridH3& model_;
  Activations activations_;
  OwnedTensor ids_, slots_, positions_;  // kI32 [1, max_rows]
  OwnedTensor page_tables_;              // kI32 [max_rows, widest table so far]
  OwnedTensor logits_;                   // [max_rows, padded V]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_DECODE_STEP_H_
