#include "engine/tasks/label_scores.h"

#include <algorithm>
#include <cmath>

namespace hippodrome {

std::vector<float> Softmax(std::span<const float> logits) {
  std::vector<float> scores(logits.begin(), logits.end());
  if (scores.empty()) return scores;
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (float& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (float& score : scores) score = static_cast<float>(score / sum);
  return scores;
}

std::vector<float> LabelScores(std::span<const float> logits) {
  if (logits.size() != 1) return Softmax(logits);
  // exp(-x) may overflow to infinity, whose inverse is the right limit.
  return {1 / (1 + std::exp(-logits[0]))};
}

}  // namespace hippodrome
