// Choosing the next tokens of a batch, each in its own way.
#ifndef HIPPODROME_ENGINE_PASSES_TOKEN_CHOOSER_H_
#define HIPPODROME_ENGINE_PASSES_TOKEN_CHOOSER_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/passes/index_matrices.h"
#include "engine/passes/token_scores.h"
#include "kernels/backend.h"

namespace hippodrome {

// How the token of a row is chosen.
struct HowToChoose {
  SamplingRow sampling;
  std::span<const LogitAdjustment> adjustments = {};
  std::optional<int32_t> likeliest =
      {};  // so many beside the token have log probabilities; none: none
};

struct TokenChoice {
  int32_t token = -1;  // -1: there was no distribution
  std::optional<TokenScores> scores;
};

// What rows ask for is added to the indices of a step, and behind their upload Run() may be
// recorded in a graph. What nobody asks for is neither uploaded nor run. Not thread-safe; the
// backend and the indices must outlive it.
class TokenChooser {
 public:
  // What Run() does beside sampling: another recording each.
  struct Kind {
    bool adjusts = false;
    int64_t likeliest = -1;  // columns; -1: no log probabilities
    auto operator<=>(const Kind&) const = default;
  };

  TokenChooser(Backend& backend, int64_t vocab, int64_t max_rows, IndexMatrices& indices);

  // `rows` >= how.size(), the others inert. What it adds, of which only the last matrix is larger
  // or smaller with the same rows and kind, its owner uploads. REQUIRES: 1 <= rows <= max_rows.
  Kind Add(std::span<const HowToChoose> how, int64_t rows);
  // The operations, on logits [rows, >= vocab], with what was added last.
  void Run(const Kind& kind, Tensor logits);
  // What Run() chose for the rows of `how`.
  std::vector<TokenChoice> Download(const Kind& kind, std::span<const HowToChoose> how);

 private:
  int64_t Columns(std::span<const HowToChoose> how) const;
  void AddAdjustments(std::span<const HowToChoose> how, int64_t rows);

  Backend& b_;
  int64_t vocab_;
  IndexMatrices& indices_;
  size_t sampling_ = 0;  // among the indices: [rows, kSamplingColumns]
  size_t offsets_ = 0;   // [1, rows + 1]
  size_t entries_ = 0;   // [adjustments, kAdjustmentColumns]
  OwnedTensor chosen_;   // kI32 [1, max_rows]
  TokenScorer scorer_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_TOKEN_CHOOSER_H_
