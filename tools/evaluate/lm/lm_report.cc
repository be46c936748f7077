#include "tools/evaluate/lm/lm_report.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <utility>

#include "tools/evaluate/interval.h"

namespace hippodrome {
namespace {

using nlohmann::ordered_json;

std::vector<size_t> All(std::span<const LmOutcome> outcomes) {
  std::vector<size_t> places(outcomes.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

ordered_json Figures(const LmTask& task, std::span<const LmOutcome> outcomes) {
  ordered_json report = {{"examples", outcomes.size()}};
  ordered_json intervals = ordered_json::object();
  for (const std::string& metric : task.metrics) {
    const FigureOf figure = LmFigure(metric, outcomes);
    report[metric] = figure(All(outcomes));
    intervals[metric] = ToJson(Bootstrap(std::ssize(outcomes), figure));
  }
  report["intervals"] = std::move(intervals);
  return report;
}

}  // namespace

ordered_json LmReport(const LmTask& task, std::span<const LmOutcome> outcomes) {
  ordered_json report = Figures(task, outcomes);
  std::map<std::string, std::vector<LmOutcome>> groups;
  for (const LmOutcome& outcome : outcomes) groups[outcome.group].push_back(outcome);
  if (groups.size() < 2) return report;
  for (const auto& [name, members] : groups) report["groups"][name] = Figures(task, members);
  return report;
}

ordered_json LmComparison(const LmTask& task, std::span<const LmOutcome> outcomes,
                          std::span<const LmOutcome> others) {
  ordered_json comparison;
  for (const std::string& metric : task.metrics) {
    const FigureOf mine = LmFigure(metric, outcomes);
    const FigureOf theirs = LmFigure(metric, others);
    const FigureOf difference = [&](std::span<const size_t> places) {
      return mine(places) - theirs(places);
    };
    comparison[metric] = {{"difference", difference(All(outcomes))}};
    comparison[metric].update(ordered_json(ToJson(Bootstrap(std::ssize(outcomes), difference))));
  }
  return comparison;
}

std::string LmReportLine(const LmTask& task, const ordered_json& report) {
  std::string line;
  for (const std::string& metric : task.metrics) {
    const double error = report["intervals"][metric]["standard_error"].get<double>();
    line += fmt::format("{}{} {:.4f} +- {:.4f}", line.empty() ? "" : ", ", metric,
                        report[metric].get<double>(), error);
  }
  return line;
}

}  // namespace hippodrome
