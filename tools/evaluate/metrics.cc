#include "tools/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace hippodrome {
namespace {

// How often a class was predicted and meant.
struct Counts {
  double true_positive = 0;
  double false_positive = 0;
  double false_negative = 0;
  double true_negative = 0;
};

Counts Count(std::span<const int64_t> predictions, std::span<const int64_t> labels,
             int64_t positive) {
  Counts counts;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool predicted = predictions[i] == positive;
    const bool meant = labels[i] == positive;
    ++(predicted ? (meant ? counts.true_positive : counts.false_positive)
                 : (meant ? counts.false_negative : counts.true_negative));
  }
  return counts;
}

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

double Mean(std::span<const double> x) {
  return Ratio(std::accumulate(x.begin(), x.end(), 0.0), static_cast<double>(x.size()));
}

// 1, 2, ... in the order of the values; equal ones share the mean of theirs.
std::vector<double> Ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

}  // namespace

double Accuracy(std::span<const int64_t> predictions, std::span<const int64_t> labels) {
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += predictions[i] == labels[i];
  return Ratio(right, static_cast<double>(labels.size()));
}

double F1(std::span<const int64_t> predictions, std::span<const int64_t> labels, int64_t positive) {
  const Counts c = Count(predictions, labels, positive);
  return Ratio(2 * c.true_positive, 2 * c.true_positive + c.false_positive + c.false_negative);
}

double MacroF1(std::span<const int64_t> predictions, std::span<const int64_t> labels,
               int64_t classes) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += F1(predictions, labels, k);
  return Ratio(sum, static_cast<double>(classes));
}

double MatthewsCorrelation(std::span<const int64_t> predictions, std::span<const int64_t> labels) {
  const auto [tp, fp, fn, tn] = Count(predictions, labels, 1);
  return Ratio(tp * tn - fp * fn, std::sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)));
}

double Pearson(std::span<const double> x, std::span<const double> y) {
  const double mean_x = Mean(x);
  const double mean_y = Mean(y);
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return Ratio(xy, std::sqrt(xx) * std::sqrt(yy));
}

double Spearman(std::span<const double> x, std::span<const double> y) {
  return Pearson(Ranks(x), Ranks(y));
}

}  // namespace hippodrome
