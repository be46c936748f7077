#include "tools/evaluate/interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
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
    // Not uniform_int_distribution, which differs between libraries; 2^-64 of bias is none.
    for (size_t& i : drawn) {
      i = static_cast<size_t>((static_cast<unsigned __int128>(random()) * drawn.size()) >> 64);
    }
    value = figure(drawn);
  }
  std::sort(figures.begin(), figures.end());
  return {.standard_error = Deviation(figures),
          .low = Quantile(figures, 0.025),
          .high = Quantile(figures, 0.975)};
}

nlohmann::json ToJson(const Interval& interval) {
  return {
      {"standard_error", interval.standard_error}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace hippodrome
