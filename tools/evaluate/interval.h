// How far a figure may be from what more examples would give.
#ifndef HIPPODROME_TOOLS_EVALUATE_INTERVAL_H_
#define HIPPODROME_TOOLS_EVALUATE_INTERVAL_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

namespace hippodrome {

// s / sqrt(n) with the sample's deviation s, sqrt(sum (x - mean)^2 / (n - 1)); 0 for less than two
// values.
double StandardErrorOfMean(std::span<const double> values);

// 95 % of the resampled figures are between `low` and `high`.
struct Interval {
  double standard_error = 0;  // the deviation of the resampled figures
  double low = 0;
  double high = 0;
};

inline constexpr int64_t kResamples = 1000;

// A figure of some examples, given as their places, which may repeat.
using FigureOf = std::function<double(std::span<const size_t> examples)>;

// The percentile bootstrap (Efron 1979): `figure` of `resamples` samples of as many examples as
// there are, drawn with replacement. The same seed gives the same interval everywhere. REQUIRES:
// examples and resamples are 1 or more.
Interval Bootstrap(int64_t examples, const FigureOf& figure, int64_t resamples = kResamples,
                   uint64_t seed = 0);

// Values that stand one behind another, and may depend on each other.
struct ValueBlock {
  double sum = 0;
  int64_t values = 0;  // 1 or more
};

// The same for a `figure` of the mean of values that depend on each other: of texts, say, and
// within them of blocks of neighbours. As many groups are drawn as there are, and of each as many
// blocks as it has, with replacement. Too narrow where groups are few; nothing where there is one
// block in all. REQUIRES: no group is empty.
std::optional<Interval> BootstrapBlocks(std::span<const std::vector<ValueBlock>> groups,
                                        const std::function<double(double mean)>& figure,
                                        int64_t resamples = kResamples, uint64_t seed = 0);

// As reports have it: {"standard_error": x, "low": x, "high": x}.
nlohmann::json ToJson(const Interval& interval);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_INTERVAL_H_
