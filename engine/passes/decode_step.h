// One step of the recurrence for a batch of sequences.
#ifndef HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_
#define HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/index_matrices.h"
#include "engine/passes/pass_rows.h"
#include "engine/passes/token_chooser.h"
#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// Owns the activations and index arrays of a step. Not thread-safe; backend, model and state must
// outlive it.
class DecodeStep {
 public:
  DecodeStep(Backend& backend, const HybridH3& model, DecodeState& state, int64_t max_rows);

  // Feeds the tokens, and gives the logits after them: [tokens.size(),
  // padded V], valid until the next call. REQUIRES: 1 <= tokens.size() <= max_rows.
  Tensor Logits(std::span<const StepToken> tokens);
  // The same, and chooses the tokens after them; how[i] says how.
  std::vector<TokenChoice> Next(std::span<const StepToken> tokens,
                                std::span<const HowToChoose> how);

  // Chooses a token per row of `logits`. REQUIRES: 1 <= how.size() <= max_rows.
  std::vector<TokenChoice> Choose(Tensor logits, std::span<const HowToChoose> how);

 private:
  // The matrices of indices: [1, rows], and where there is attention
  // [rows, table_width_]; behind them those of the chooser.
  enum Indices : uint8_t { kIds, kSlots, kPositions, kPageTables };

  // Index arrays as wide as a backend likes a step to be.
  struct Inputs {
    int64_t rows = 0;
    Tensor ids;
    StepRows step;
  };
  // What a graph does: a number of rows, and their choice unless logits are all.
  using GraphKey = std::pair<int64_t, std::optional<TokenChooser::Kind>>;

  // Rows of a step for so many tokens, whose indices it adds.
  int64_t AddRows(std::span<const StepToken> tokens);
  void AddPageTables(std::span<const StepToken> tokens, int64_t rows);
  // Copies the indices. Graphs that would look for them elsewhere go.
  void Upload();
  Inputs RowsOf(int64_t rows) const;
  void Run(const Inputs& inputs);

  Backend& b_;
  const HybridH3& model_;
  DecodeState& state_;
  int64_t max_rows_;  // as the backend likes it
  Activations activations_;
  IndexMatrices indices_;
  int64_t table_width_ = 0;  // of the widest page table so far; 0: there is no attention
  OwnedTensor logits_;       // [max_rows, padded V]
  TokenChooser chooser_;
  std::map<GraphKey, std::unique_ptr<Graph>> graphs_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_DECODE_STEP_H_
