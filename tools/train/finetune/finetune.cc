#include "tools/train/finetune/finetune.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <vector>

#include "engine/base/durable_files.h"
#include "engine/base/status.h"
#include "tools/convert/model_card.h"
#include "tools/train/finetune/finetune_run.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

double ValueOf(const Json& run, const std::string& metric) {
  return run.at("dev").at(metric).get<double>();
}

// The mean of `values`, and the sample's deviation where there are two or more.
struct Spread {
  double mean = 0;
  std::optional<double> deviation;
};

Spread SpreadOf(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

// A point's member of "points", from its runs.
Json SummaryOf(const FinetunePoint& point, const std::vector<Json>& runs,
               const std::vector<std::string>& metrics) {
  Json summary = {{"rate", point.rate},
                  {"weight_decay", point.weight_decay},
                  {"batch", point.batch},
                  {"epochs", point.epochs},
                  {"seeds", runs.size()}};
  for (const std::string& metric : metrics) {
    std::vector<double> values;
    for (const Json& run : runs) values.push_back(ValueOf(run, metric));
    const Spread spread = SpreadOf(values);
    summary["mean"][metric] = spread.mean;
    if (spread.deviation.has_value()) summary["deviation"][metric] = *spread.deviation;
  }
  return summary;
}

// The name of the run that has the highest `metric`, the first among equals; empty: none has any.
std::string BestOf(const Json& runs, const std::string& metric) {
  std::string best;
  double highest = -std::numeric_limits<double>::infinity();
  for (const Json& run : runs) {
    if (!run.contains("dev") || ValueOf(run, metric) <= highest) continue;
    highest = ValueOf(run, metric);
    best = run.at("name");
  }
  return best;
}

// Makes `to` a copy of the model directory `from`, but for a README.md of a person there.
absl::Status CopyModel(const std::string& from, const std::string& to) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<std::string> own, ReadOwnReadme(to));
  const std::string partial = to + ".tmp";
  HIPPODROME_RETURN_IF_ERROR(RemoveTree(partial));
  HIPPODROME_RETURN_IF_ERROR(MakeDirectories(partial));
  std::error_code error;
  std::filesystem::copy(from, partial, std::filesystem::copy_options::recursive, error);
  if (error) return Internal(partial + ": " + error.message());
  if (own.has_value()) {
    HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(partial + "/" + kModelCardFile, *own));
  }
  for (const auto& file : std::filesystem::directory_iterator(partial, error)) {
    HIPPODROME_RETURN_IF_ERROR(SyncPath(file.path().string()));
  }
  HIPPODROME_RETURN_IF_ERROR(SyncPath(partial));
  return ReplaceDirectory(partial, to);
}

}  // namespace

absl::StatusOr<std::optional<Json>> Finetune(const FinetuneTask& task,
                                             const FinetuneOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(FinetuneRunner runner, FinetuneRunner::Create(task, options));
  const std::vector<std::string> metrics = task.Metrics();
  Json report = {{"task", task.name()},          {"model", options.model},
                 {"length", runner.length()},    {"weights", WeightsName(options.weights)},
                 {"patience", options.patience}, {"metrics", metrics}};
  report["runs"] = Json::array();
  report["points"] = Json::array();
  for (const FinetunePoint& point : PointsOf(options.grid)) {
    std::vector<Json> judged;
    for (const int64_t seed : options.grid.seeds) {
      HIPPODROME_ASSIGN_OR_RETURN(const std::optional<Json> run, runner.Run(point, seed));
      if (!run.has_value()) return std::nullopt;
      report["runs"].push_back(*run);
      if (run->contains("dev")) judged.push_back(*run);
    }
    if (!judged.empty()) report["points"].push_back(SummaryOf(point, judged, metrics));
  }
  const std::string best = BestOf(report["runs"], metrics.front());
  if (best.empty()) {
    return absl::AbortedError("no run gave a model; " +
                              report["runs"][0].at("error").get<std::string>());
  }
  HIPPODROME_RETURN_IF_ERROR(CopyModel(options.runs + "/" + best + "/model", options.result));
  report["best"] = best;
  report["best_model"] = options.result;
  return report;
}

}  // namespace hippodrome
