// The metrics of GLUE, by their usual definitions.
#ifndef HIPPODROME_TOOLS_EVALUATE_METRICS_H_
#define HIPPODROME_TOOLS_EVALUATE_METRICS_H_

#include <cstdint>
#include <span>

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

// (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)) of the classes 0 and 1.
double MatthewsCorrelation(std::span<const int64_t> predictions, std::span<const int64_t> labels);

// cov(x, y) / (sd(x) sd(y)).
double Pearson(std::span<const double> x, std::span<const double> y);

// Pearson of the ranks; equal values share the mean of their ranks.
double Spearman(std::span<const double> x, std::span<const double> y);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_METRICS_H_
