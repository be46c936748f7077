// Metrics with their intervals, as reports and tables have them.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_METRIC_REPORT_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_METRIC_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tools/evaluate/interval.h"

namespace hippodrome {

struct Metric {
  std::string name;  // "accuracy"
  FigureOf figure;
};

// {"accuracy": x, "intervals": {"accuracy": {...}}}: each metric of all examples, and its interval
// by resampling them; of no examples without intervals.
nlohmann::json MetricReport(int64_t examples, std::span<const Metric> metrics);

// The values of the examples at these places.
template <typename T>
std::vector<T> ValuesAt(std::span<const size_t> places, const std::vector<T>& values) {
  std::vector<T> found;
  found.reserve(places.size());
  for (const size_t place : places) found.push_back(values[place]);
  return found;
}

// The mean of `values`, one for each example; 0 of none. They must outlive it.
FigureOf MeanOfExamples(const std::vector<double>& values);

// "0.912 (0.890 to 0.931)", a metric of a MetricReport().
std::string MetricText(const nlohmann::json& report, const std::string& metric);

// Prints rows of cells on stderr, in columns, for people: stdout is one JSON object's. REQUIRES: as
// many cells in each.
void PrintTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_METRIC_REPORT_H_
