#include "engine/passes/token_scores.h"

#include <algorithm>

#include "engine/sampling.h"

namespace hippodrome {

int64_t TokenScorer::MostLikeliest() const { return std::min<int64_t>(kMaxLikeliest, vocab_); }

void TokenScorer::Allocate() {
  if (log_probabilities_.view.data != nullptr) return;
  likeliest_ = b_.NewIndices(max_rows_, MostLikeliest());
  log_probabilities_ = b_.NewTensor(max_rows_, 1 + MostLikeliest());
}

void TokenScorer::Score(Tensor logits, Tensor tokens, int64_t likeliest) {
  Allocate();
  b_.LogProbabilities(logits, vocab_, tokens,
                      likeliest_.view.Rows(0, logits.rows).Cols(0, likeliest),
                      log_probabilities_.view.Rows(0, logits.rows).Cols(0, 1 + likeliest));
}

std::vector<TokenScores> TokenScorer::Download(int64_t rows, int64_t likeliest) {
  const int64_t width = 1 + likeliest;
  std::vector<float> values(static_cast<size_t>(rows * width));
  std::vector<int32_t> ids(static_cast<size_t>(rows * likeliest));
  b_.Download(log_probabilities_.view.Rows(0, rows).Cols(0, width), values);
  if (likeliest > 0) b_.DownloadIndices(likeliest_.view.Rows(0, rows).Cols(0, likeliest), ids);
  std::vector<TokenScores> scores(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    TokenScores& s = scores[static_cast<size_t>(r)];
    s.log_probability = values[static_cast<size_t>(r * width)];
    for (int64_t i = 0; i < likeliest; ++i) {
      s.likeliest.push_back({ids[static_cast<size_t>(r * likeliest + i)],
                             values[static_cast<size_t>(r * width + 1 + i)]});
    }
  }
  return scores;
}

}  // namespace hippodrome
