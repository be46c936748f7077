#include "tools/evaluate/interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace hippodrome {
namespace {

double SampleMean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = SampleMean(values);
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Between the two values beside it, as numpy.quantile does it. REQUIRES: sorted, not empty.
double Quantile(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

// In [0, count). Not uniform_int_distribution, which differs between libraries; 2^-64 of bias is
// none.
size_t DrawBelow(size_t count, std::mt19937_64& random) {
  return static_cast<size_t>((static_cast<unsigned __int128>(random()) * count) >> 64);
}

Interval IntervalOf(std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  return {.standard_error = Deviation(figures),
          .low = Quantile(figures, 0.025),
          .high = Quantile(figures, 0.975)};
}

}  // namespace

double StandardErrorOfMean(std::span<const double> values) {
  if (values.empty()) return 0;
  return Deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

Interval Bootstrap(int64_t examples, const FigureOf& figure, int64_t resamples, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> drawn(static_cast<size_t>(examples));
  std::vector<double> figures(static_cast<size_t>(resamples));
  for (double& value : figures) {
    for (size_t& i : drawn) i = DrawBelow(drawn.size(), random);
    value = figure(drawn);
  }
  return IntervalOf(std::move(figures));
}

std::optional<Interval> BootstrapBlocks(std::span<const std::vector<ValueBlock>> groups,
                                        const std::function<double(double mean)>& figure,
                                        int64_t resamples, uint64_t seed) {
  if (groups.empty() || (groups.size() == 1 && groups[0].size() == 1)) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<double> figures(static_cast<size_t>(resamples));
  for (double& value : figures) {
    ValueBlock drawn;
    for (size_t g = 0; g < groups.size(); ++g) {
      const std::vector<ValueBlock>& group = groups[DrawBelow(groups.size(), random)];
      for (size_t b = 0; b < group.size(); ++b) {
        const ValueBlock& block = group[DrawBelow(group.size(), random)];
        drawn.sum += block.sum;
        drawn.values += block.values;
      }
    }
    value = figure(drawn.sum / static_cast<double>(drawn.values));
  }
  return IntervalOf(std::move(figures));
}

nlohmann::json ToJson(const Interval& interval) {
  return {
      {"standard_error", interval.standard_error}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace hippodrome
