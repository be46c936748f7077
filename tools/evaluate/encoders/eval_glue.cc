#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/glue_score.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;

CommandSpec GlueSpec() {
  CommandSpec spec = EncoderCommand({
      .name = "eval glue",
      .summary = "Evaluates classifiers on all tasks of GLUE that there are data for.",
      .usage = {"--model [TASK=]DIR... --data-dir DIR [OPTION]..."},
      .description =
          "Prints a table on stderr and one JSON object on stdout. Tasks that are left out are "
          "named "
          "with the reason. The models of mnli are also those of mnli_mismatched and ax, which is "
          "the diagnostic set.",
      .options = {{"data-dir", "DIR",
                   "GLUE's folder as it is published: CoLA/dev.tsv, MNLI/dev_matched.tsv, and so "
                   "on; files may be packed by gzip"}},
  });
  spec.options.front() = {.name = "model",
                          .value = "[TASK=]DIR",
                          .meaning =
                              "the model of a task; without TASK, DIR holds a model in a folder of "
                              "each task's name (DIR/sst2), or one that is tried on every task "
                              "that has as many labels and no model of its own",
                          .repeatable = true};
  return spec;
}

// ---- Models ------------------------------------------------------------------------------------

const std::vector<EncoderHead> kHeads = {EncoderHead::kSequenceClassification};

struct GlueModel {
  std::string directory;
  BigsConfig config;
};

struct GlueModels {
  std::map<std::string, GlueModel> of_task;
  std::vector<GlueModel> of_any_task;
};

bool HoldsModel(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "config.json", error);
}

absl::StatusOr<GlueModel> ReadModel(const std::string& directory) {
  GlueModel model = {.directory = directory};
  HIPPODROME_ASSIGN_OR_RETURN(model.config, ReadEncoderConfig(directory, kHeads));
  return model;
}

// The model in the folder, or those in its folders.
absl::Status AddModels(const std::string& directory, GlueModels& models) {
  if (HoldsModel(directory)) {
    HIPPODROME_ASSIGN_OR_RETURN(GlueModel model, ReadModel(directory));
    models.of_any_task.push_back(std::move(model));
    return absl::OkStatus();
  }
  bool found = false;
  for (const GlueTask& task : GlueTasks()) {
    const fs::path folder = fs::path(directory) / task.name;
    if (!HoldsModel(folder)) continue;
    found = true;
    HIPPODROME_ASSIGN_OR_RETURN(models.of_task[task.name], ReadModel(folder.string()));
  }
  if (found) return absl::OkStatus();
  return NotFound(directory +
                  ": expected a model, with config.json, or folders of models, called " +
                  GlueTaskNames());
}

absl::StatusOr<GlueModels> ReadModels(const CommandLine& line) {
  HIPPODROME_RETURN_IF_ERROR(line.Required("model").status());
  GlueModels models;
  for (const std::string& value : line.All("model")) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) {
      HIPPODROME_RETURN_IF_ERROR(AddModels(value, models));
      continue;
    }
    const std::string task = value.substr(0, equals);
    if (FindGlueTask(task) == nullptr) {
      return Usage("--model " + OneLine(value) + ": '" + OneLine(task) + "' is none of " +
                   GlueTaskNames());
    }
    HIPPODROME_ASSIGN_OR_RETURN(models.of_task[task], ReadModel(value.substr(equals + 1)));
  }
  return models;
}

// The directory of the task's model. Errors: kFailedPrecondition says why there is none;
// kInvalidArgument for one that was named for the task and does not fit.
absl::StatusOr<std::string> ModelFor(const GlueTask& task, const GlueModels& models) {
  for (const std::string& owner : {task.name, task.model}) {
    const auto own = models.of_task.find(owner);
    if (own == models.of_task.end()) continue;
    const auto& [directory, config] = own->second;
    const absl::Status fits = CheckGlueModel(task, config);
    if (!fits.ok()) return InvalidArgument(directory + ": " + Message(fits));
    return directory;
  }
  absl::Status reason = FailedPrecondition("there is no model for it");
  for (const auto& [directory, config] : models.of_any_task) {
    reason = CheckGlueModel(task, config);
    if (reason.ok()) return directory;
  }
  return reason;
}

// ---- The evaluation ----------------------------------------------------------------------------

// A task that can be run, with its data.
struct GlueRun {
  const GlueTask* task = nullptr;
  std::string model;
  GlueData data;
};

struct GluePlan {
  std::vector<GlueRun> runs;
  std::vector<std::pair<std::string, std::string>> skipped;  // tasks, and why
};

// Everything is read before the first model runs, so that errors come early.
absl::StatusOr<GluePlan> PlanRuns(const GlueModels& models, const std::string& data) {
  GluePlan plan;
  for (const GlueTask& task : GlueTasks()) {
    const std::string path = (fs::path(data) / task.file).string();
    std::error_code error;
    if (!fs::exists(path, error)) {
      plan.skipped.emplace_back(task.name, "there is no " + path);
      continue;
    }
    const auto model = ModelFor(task, models);
    if (absl::IsFailedPrecondition(model.status())) {
      plan.skipped.emplace_back(task.name, Message(model.status()));
      continue;
    }
    if (!model.ok()) return model.status();
    HIPPODROME_ASSIGN_OR_RETURN(GlueData read, ReadGlueData(task, path));
    plan.runs.push_back({.task = &task, .model = *model, .data = std::move(read)});
  }
  if (!plan.runs.empty()) return plan;
  std::string reasons;
  for (const auto& [task, why] : plan.skipped) reasons += "; " + task + ": " + why;
  return FailedPrecondition("no task has both data and a model" + reasons);
}

// The reports of the tasks by name. One model is open at a time, for all its tasks.
absl::StatusOr<nlohmann::json> Evaluate(const CommandLine& line, const GluePlan& plan) {
  std::map<std::string, std::vector<const GlueRun*>> by_model;
  for (const GlueRun& run : plan.runs) by_model[run.model].push_back(&run);
  nlohmann::json reports;
  for (const auto& [model, runs] : by_model) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto session, EncoderSession::Open(line, model, kHeads));
    for (const GlueRun* run : runs) {
      HIPPODROME_ASSIGN_OR_RETURN(const GluePredictions predictions,
                                  PredictGlue(*session, *run->task, run->data.texts));
      nlohmann::json& report = reports[run->task->name];
      report = GlueReport(*session, *run->task, run->data.texts, predictions, run->data.labels);
      report["model"] = model;
    }
  }
  return reports;
}

void PrintResults(const GluePlan& plan, const nlohmann::json& reports) {
  std::vector<std::vector<std::string>> rows = {{"task", "examples", "metric", "value (95 %)"}};
  for (const GlueRun& run : plan.runs) {
    const nlohmann::json& report = reports.at(run.task->name);
    for (const auto& [metric, interval] : report.at("intervals").items()) {
      rows.push_back({run.task->name, std::to_string(run.data.texts.examples.size()), metric,
                      MetricText(report, metric)});
    }
  }
  for (const auto& [task, why] : plan.skipped) rows.push_back({task, "-", "skipped", why});
  PrintTable(rows);
}

absl::Status EvaluateGlue(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const GlueModels models, ReadModels(line));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string data, line.Required("data-dir"));
  HIPPODROME_ASSIGN_OR_RETURN(const GluePlan plan, PlanRuns(models, data));
  HIPPODROME_ASSIGN_OR_RETURN(nlohmann::json reports, Evaluate(line, plan));
  PrintResults(plan, reports);
  nlohmann::json report = {{"task", "glue"}, {"tasks", std::move(reports)}};
  report["skipped"] = nlohmann::json::object();
  for (const auto& [task, why] : plan.skipped) report["skipped"][task] = why;
  return Report(line, report);
}

}  // namespace

int EvalGlue(int argc, char** argv) { return RunCommand(argc, argv, GlueSpec(), EvaluateGlue); }

}  // namespace hippodrome
