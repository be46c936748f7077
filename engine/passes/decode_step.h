// One step of the recurrence for a batch of sequences.
#ifndef HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_
#define HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// The next token of one sequence, and how the one after it is chosen.
struct StepToken {
  int32_t token = 0;     // in [0, padded V)
  int64_t position = 0;  // tokens of the sequence before it
  const SequenceState* sequence = nullptr;
  SamplingParameters sampling = {};
};

// Owns the activations and index arrays of a step. Not thread-safe; backend, model and state must
// outlive it.
class DecodeStep {
 public:
  DecodeStep(Backend& backend, const HybridH3& model, DecodeState& state, int64_t max_rows);

  // Feeds the tokens, of different sequences, and gives the logits after them: [tokens.size(),
  // padded V], valid until the next call. REQUIRES: 1 <= tokens.size() <= max_rows.
  Tensor Logits(std::span<const StepToken> tokens);
  // The same, and chooses the tokens after them.
  std::vector<int32_t> Next(std::span<const StepToken> tokens);

  // Chooses a token per row of `logits`; rows[i] says how. REQUIRES: 1 <= rows.size() <= max_rows.
  std::vector<int32_t> Sample(Tensor logits, std::span<const SamplingRow> rows);

 private:
  // Index arrays as wide as a backend likes a step to be.
  struct Inputs {
    int64_t rows = 0;
    Tensor ids;
    StepRows step;
  };
  enum class Purpose : uint8_t { kLogits, kNext };

  Inputs Upload(std::span<const StepToken> tokens);
  Tensor UploadPageTables(std::span<const StepToken> tokens, int64_t rows);
  void Run(const Inputs& inputs);
  Tensor SamplingRows(int64_t rows) const { return sampling_.view.Rows(0, rows); }
  Tensor Chosen(int64_t rows) const { return chosen_.view.Cols(0, rows); }

  Backend& b_;
  const HybridH3& model_;
  DecodeState& state_;
  int64_t max_rows_;  // as the backend likes it
  Activations activations_;
  OwnedTensor tokens_;       // kI32 [3, max_rows]: ids, slots, positions
  OwnedTensor page_tables_;  // kI32 [max_rows, widest table so far]
  OwnedTensor logits_;       // [max_rows, padded V]
  OwnedTensor sampling_;     // kI32 [max_rows, kSamplingColumns]
  OwnedTensor chosen_;       // kI32 [1, max_rows]
  std::map<std::pair<Purpose, int64_t>, std::unique_ptr<Graph>> graphs_;  // by rows
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_
