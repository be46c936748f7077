// The report of fine-tuning as tables.
#include <fmt/format.h>

#include <cstdio>

#include "tools/evaluate/encoders/metric_report.h"
#include "tools/train/finetune/finetune.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

std::string Number(const Json& object, const char* member) {
  return fmt::format("{}", object.at(member).get<double>());
}

// A point of the grid.
std::vector<std::string> PointCells(const Json& object) {
  return {Number(object, "rate"), Number(object, "weight_decay"), Number(object, "batch"),
          Number(object, "epochs")};
}

void Append(std::vector<std::string>& cells, const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
}

std::vector<std::string> RunCells(const Json& run, const Json& report) {
  const bool best = run.at("name") == report.at("best");
  std::vector<std::string> cells = {best ? "*" : ""};
  Append(cells, PointCells(run));
  Append(cells, {Number(run, "seed"), Number(run, "steps"),
                 run.contains("model_step") ? Number(run, "model_step") : "-"});
  for (const auto& metric : report.at("metrics")) {
    const bool judged = run.contains("dev");
    cells.push_back(judged ? MetricText(run.at("dev"), metric.get<std::string>()) : "no model");
  }
  return cells;
}

Rows RunRows(const Json& report) {
  Rows rows = {{"", "rate", "decay", "batch", "epochs", "seed", "steps", "best step"}};
  for (const auto& metric : report.at("metrics")) {
    rows[0].push_back(metric.get<std::string>() + " (95 %)");
  }
  for (const Json& run : report.at("runs")) rows.push_back(RunCells(run, report));
  return rows;
}

// Of the points that have several seeds.
Rows PointRows(const Json& report) {
  Rows rows = {{"", "rate", "decay", "batch", "epochs", "seeds"}};
  for (const auto& metric : report.at("metrics")) {
    rows[0].push_back(metric.get<std::string>() + ", mean and deviation");
  }
  for (const Json& point : report.at("points")) {
    if (!point.contains("deviation")) continue;
    std::vector<std::string> cells = {""};
    Append(cells, PointCells(point));
    cells.push_back(Number(point, "seeds"));
    for (const auto& metric : report.at("metrics")) {
      const std::string name = metric;
      cells.push_back(fmt::format("{:.3f} +- {:.3f}", point.at("mean").at(name).get<double>(),
                                  point.at("deviation").at(name).get<double>()));
    }
    rows.push_back(cells);
  }
  return rows;
}

}  // namespace

void PrintFinetuneReport(const Json& report) {
  PrintTable(RunRows(report));
  if (const Rows points = PointRows(report); points.size() > 1) PrintTable(points);
  std::fprintf(stderr,
               "%s: *, the best of %zu by %s on the dev data, is in %s; a best one is chosen by "
               "luck too, so expect less of it on other data\n",
               report.at("task").get<std::string>().c_str(), report.at("runs").size(),
               report.at("metrics").at(0).get<std::string>().c_str(),
               report.at("best_model").get<std::string>().c_str());
}

}  // namespace hippodrome
