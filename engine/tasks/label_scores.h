// From the logits of a classifier to scores.
#ifndef HIPPODROME_ENGINE_TASKS_LABEL_SCORES_H_
#define HIPPODROME_ENGINE_TASKS_LABEL_SCORES_H_

#include <span>
#include <vector>

namespace hippodrome {

// exp(x_i) / sum_j exp(x_j), without overflow. Empty for no logits.
std::vector<float> Softmax(std::span<const float> logits);

// Softmax() of several logits; 1 / (1 + exp(-x)) of a single one.
std::vector<float> LabelScores(std::span<const float> logits);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TASKS_LABEL_SCORES_H_
