// Metrics by their usual definitions: of GLUE, and of SQuAD.
#ifndef HIPPODROME_TOOLS_EVALUATE_METRICS_H_
#define HIPPODROME_TOOLS_EVALUATE_METRICS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// All: REQUIRES as many predictions as labels. Where a definition divides by zero (no examples, a
// constant series) the result is 0.

// The share of examples whose prediction is the label.
double Accuracy(std::span<const int64_t> predictions, std::span<const int64_t> labels);

// 2 TP / (2 TP + FP + FN) of the class `positive`.
double F1(std::span<const int64_t> predictions, std::span<const int64_t> labels, int64_t positive);

// The mean of F1 over `classes` classes 0, 1, ...
double MacroF1(std::span<const int64_t> predictions, std::span<const int64_t> labels,
               int64_t classes);

// (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)) of the classes 0 and 1; of more
// classes 0, 1, ... its generalisation (Gorodkin 2004), cov(x, y) / sqrt(cov(x, x) cov(y, y)) with
// predictions and labels as indicators of classes.
double MatthewsCorrelation(std::span<const int64_t> predictions, std::span<const int64_t> labels);

// cov(x, y) / (sd(x) sd(y)).
double Pearson(std::span<const double> x, std::span<const double> y);

// Pearson of the ranks; equal values share the mean of their ranks.
double Spearman(std::span<const double> x, std::span<const double> y);

// The words of an answer as the published scripts leave them: in lower case, without ASCII
// punctuation, without "a", "an" and "the", split at white space. Each character has one lower
// case: of a final sigma that is not Python's. What is not UTF-8 is dropped.
std::vector<std::string> AnswerWords(std::string_view answer);

// Whose evaluation script is followed. They differ where a text has no words.
enum class SquadVersion : uint8_t {
  k1,  // evaluate-v1.1.py: gold answers without words are answers, but share no word with any
  // evaluate-v2.0.py: gold answers without words count only where all are so; an empty answer and
  // another agree
  k2,
};

struct AnswerScore {
  double exact = 0;  // 1 where the words are the same, else 0
  double f1 = 0;     // of the words as bags: 2 common / (both)
};

// The best of each over the gold answers; without any, the right answer is the empty one.
AnswerScore ScoreAnswer(std::string_view prediction, std::span<const std::string> gold,
                        SquadVersion version = SquadVersion::k2);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_METRICS_H_
