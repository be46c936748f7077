// Log probabilities of tokens, and of the likeliest ones beside them.
#ifndef HIPPODROME_ENGINE_PASSES_TOKEN_SCORES_H_
#define HIPPODROME_ENGINE_PASSES_TOKEN_SCORES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

struct LikelyToken {
  int32_t token = 0;
  float log_probability = 0;  // natural, of the softmax of the model's own logits
};

struct TokenScores {
  float log_probability = 0;           // of the token in question
  std::vector<LikelyToken> likeliest;  // in descending order, the smallest id first among equals
};

// Owns what Backend::LogProbabilities() writes. Not thread-safe; the backend must outlive it.
class TokenScorer {
 public:
  // Nothing is allocated before the first use.
  TokenScorer(Backend& backend, int64_t vocab, int64_t max_rows)
      : b_(backend), vocab_(vocab), max_rows_(max_rows) {}

  // Calls the operation for logits [rows, >= vocab] and tokens kI32 [1, rows], on the same memory
  // for the same `likeliest`. REQUIRES: 1 <= rows <= max_rows, 0 <= likeliest <= MostLikeliest().
  void Score(Tensor logits, Tensor tokens, int64_t likeliest);
  // What the last Score() gave for the first rows.
  std::vector<TokenScores> Download(int64_t rows, int64_t likeliest);

  // min(kMaxLikeliest, vocab).
  int64_t MostLikeliest() const;

 private:
  void Allocate();

  Backend& b_;
  int64_t vocab_;
  int64_t max_rows_;
  OwnedTensor likeliest_;          // kI32 [max_rows, most]
  OwnedTensor log_probabilities_;  // [max_rows, 1 + most]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_TOKEN_SCORES_H_
