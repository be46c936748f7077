#include "tools/evaluate/encoders/metric_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace hippodrome {

nlohmann::json MetricReport(int64_t examples, std::span<const Metric> metrics) {
  std::vector<size_t> all(static_cast<size_t>(examples));
  std::iota(all.begin(), all.end(), size_t{0});
  nlohmann::json report;
  for (const auto& [name, figure] : metrics) {
    report[name] = figure(all);
    if (examples > 0) report["intervals"][name] = ToJson(Bootstrap(examples, figure));
  }
  return report;
}

FigureOf MeanOfExamples(const std::vector<double>& values) {
  return [&values](std::span<const size_t> places) {
    double sum = 0;
    for (const size_t place : places) sum += values[place];
    return places.empty() ? 0 : sum / static_cast<double>(places.size());
  };
}

std::string MetricText(const nlohmann::json& report, const std::string& metric) {
  const double value = report.at(metric).get<double>();
  std::array<char, 100> text;
  if (!report.contains("intervals")) {
    std::snprintf(text.data(), text.size(), "%.3f", value);
    return text.data();
  }
  const nlohmann::json& interval = report.at("intervals").at(metric);
  std::snprintf(text.data(), text.size(), "%.3f (%.3f to %.3f)", value,
                interval.at("low").get<double>(), interval.at("high").get<double>());
  return text.data();
}

void PrintTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.empty() ? 0 : rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    std::fprintf(stderr, "%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

}  // namespace hippodrome
