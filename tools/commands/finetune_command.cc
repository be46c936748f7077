#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/commands/commands.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/report.h"
#include "tools/mpi/open_communicator.h"
#include "tools/train/finetune/finetune.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string TrainedTaskNames() {
  std::string names;
  for (const GlueTask& task : GlueTasks()) {
    if (!task.train.empty()) names += task.name + "|";
  }
  return names + "glue|squad";
}

CommandSpec FinetuneSpec() {
  return {
      .name = "finetune",
      .summary = "Fine-tunes an encoder for a task over a grid of settings, and keeps the best.",
      .usage = {"TASK --model DIR --data-dir DIR --out DIR [OPTION]..."},
      .description =
          "Each point of the grid is trained with early stopping and judged on the dev data as by "
          "hippodrome eval. Prints a table on stderr and one JSON object on stdout. The best model "
          "is in OUT/model, each run in OUT/runs/NAME; the same command goes on where it was "
          "stopped.\n"
          "glue is all tasks that there are data for: models are in OUT/models/TASK. Of MNLI's "
          "model, where there is one, those of RTE, MRPC and STS-B are made.",
      .arguments = {{"TASK", TrainedTaskNames()}},
      .options = {
          {"model", "DIR", "a BiGS encoder to begin with: a masked LM, or one tuned before"},
          {"data-dir", "DIR",
           "GLUE's folder as it is published; of squad that with train-v1.1.json and "
           "dev-v1.1.json, or v2.0"},
          {"train", "FILE", "data to train on, in place of the file in --data-dir"},
          {"dev", "FILE", "data to judge on, in place of the file in --data-dir"},
          {"out", "DIR", "where everything goes"},
          {"grid", "small|published",
           "small: for small models, two rates and two seeds; published: that of the BiGS paper",
           "small"},
          {"rates", "X,X..", "highest learning rates (default: the grid's, as for the next four)"},
          {"weight-decays", "X,X..", "weight decays"},
          {"batches", "N,N..", "sequences of a step"},
          {"epochs", "N,N..", "passes over the data, at most"},
          {"seeds", "N,N..", "of the order of the data, dropout and new parameters"},
          {"length", "N",
           "tokens of an input; more than the model's positions continues their table (default: "
           "128 for GLUE, for squad the model's positions)"},
          {"micro-batch", "N", "sequences at a time (default: those of a step)"},
          {"patience", "N", "epochs in a row that are no better, after which a run ends", "3"},
          {"weights", "f32|bf16", "type of the matrices in products", "f32"},
          DeviceOption(),
          ThreadsOption(),
          JsonOption(),
      }};
}

// ---- Options -----------------------------------------------------------------------------------

// Replaces `values` by the numbers in [least, most] of the option, if it was given.
template <typename T>
absl::Status ReadList(const CommandLine& line, const std::string& name, T least, T most,
                      std::vector<T>& values) {
  if (!line.Has(name)) return absl::OkStatus();
  values.clear();
  std::istringstream parts(line.Text(name));
  for (std::string part; std::getline(parts, part, ',');) {
    T value = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, value);
    if (error != std::errc() || stop != end || !(value >= least && value <= most)) {
      std::ostringstream range;
      range << least << " to " << most;
      return Usage("--" + name + " has '" + OneLine(part) + "', expected numbers from " +
                   range.str() + " with commas between");
    }
    if (std::ranges::find(values, value) != values.end()) {
      return Usage("--" + name + " has '" + part + "' twice");
    }
    values.push_back(value);
  }
  return values.empty() ? Usage("--" + name + " is empty, expected numbers") : absl::OkStatus();
}

absl::StatusOr<FinetuneGrid> ReadGrid(const CommandLine& line, const std::string& task) {
  constexpr double kLeastRate = 1e-12;
  constexpr double kMost = 100;
  constexpr int64_t kMany = int64_t{1} << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("grid"));
  FinetuneGrid grid = name == "small"   ? SmallGrid()
                      : task == "squad" ? PublishedSquadGrid()
                                        : PublishedGlueGrid();
  HIPPODROME_RETURN_IF_ERROR(ReadList(line, "rates", kLeastRate, kMost, grid.rates));
  HIPPODROME_RETURN_IF_ERROR(ReadList(line, "weight-decays", 0.0, kMost, grid.weight_decays));
  HIPPODROME_RETURN_IF_ERROR(ReadList(line, "batches", int64_t{1}, kMany, grid.batches));
  HIPPODROME_RETURN_IF_ERROR(ReadList(line, "epochs", int64_t{1}, kMany, grid.epochs));
  HIPPODROME_RETURN_IF_ERROR(ReadList(line, "seeds", int64_t{0}, kMany, grid.seeds));
  return grid;
}

std::string Absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

// All but where results go.
absl::StatusOr<FinetuneOptions> ReadOptions(const CommandLine& line, const std::string& task) {
  constexpr int64_t kMany = int64_t{1} << 20;
  FinetuneOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string model, line.Required("model"));
  options.model = Absolute(model);
  HIPPODROME_ASSIGN_OR_RETURN(options.grid, ReadGrid(line, task));
  HIPPODROME_ASSIGN_OR_RETURN(options.length, line.Integer("length", 0, 3, kMany));
  HIPPODROME_ASSIGN_OR_RETURN(options.micro_batch, line.Integer("micro-batch", 0, 1, kMany));
  HIPPODROME_ASSIGN_OR_RETURN(options.patience, line.Integer("patience", 1, kMany));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  options.weights = weights.value_or(DType::kF32);
  HIPPODROME_ASSIGN_OR_RETURN(options.device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(options.threads, line.Threads());
  return options;
}

// The files of a task, in the data folder unless options name them.
absl::StatusOr<FinetuneFiles> FilesOf(const CommandLine& line, const std::string& train,
                                      const std::string& dev) {
  FinetuneFiles files = {.train = line.Text("train"), .dev = line.Text("dev")};
  if (files.train.empty() || files.dev.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string folder, line.Required("data-dir"));
    if (files.train.empty()) files.train = folder + "/" + train;
    if (files.dev.empty()) files.dev = folder + "/" + dev;
  }
  for (std::string* file : {&files.train, &files.dev}) {
    *file = Absolute(*file);
    std::error_code error;
    if (!fs::exists(*file, error)) return NotFound("there is no " + *file);
  }
  return files;
}

absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeSquad(const CommandLine& line) {
  std::error_code error;
  const bool first = fs::exists(line.Text("data-dir") + "/train-v1.1.json", error);
  const std::string version = first ? "-v1.1.json" : "-v2.0.json";
  HIPPODROME_ASSIGN_OR_RETURN(const FinetuneFiles files,
                              FilesOf(line, "train" + version, "dev" + version));
  return MakeSquadFinetuneTask(files);
}

absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeGlue(const CommandLine& line,
                                                       const GlueTask& task) {
  HIPPODROME_ASSIGN_OR_RETURN(const FinetuneFiles files, FilesOf(line, task.train, task.file));
  return MakeGlueFinetuneTask(task, files);
}

// ---- One task, and all of GLUE -----------------------------------------------------------------

absl::Status Stopped() {
  std::fprintf(stderr, "stopped; the same command goes on\n");
  return absl::OkStatus();
}

absl::Status FinetuneOne(const CommandLine& line, const FinetuneTask& task,
                         const std::string& out) {
  HIPPODROME_ASSIGN_OR_RETURN(FinetuneOptions options, ReadOptions(line, task.name()));
  options.runs = out + "/runs";
  options.result = out + "/model";
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<Json> report, Finetune(task, options));
  if (!report.has_value()) return Stopped();
  PrintFinetuneReport(*report);
  return Report(line, *report);
}

// Those that others begin with come before them.
std::vector<const GlueTask*> TrainedTasks() {
  std::vector<const GlueTask*> tasks;
  for (const GlueTask& task : GlueTasks()) {
    if (!task.train.empty()) tasks.push_back(&task);
  }
  std::ranges::stable_partition(tasks,
                                [](const GlueTask* task) { return task->begins_with.empty(); });
  return tasks;
}

// The best run of each task.
void PrintBest(const Json& reports) {
  std::vector<std::vector<std::string>> rows = {{"task", "run", "metric", "value (95 %)"}};
  for (const auto& [task, report] : reports.items()) {
    const std::string metric = report.at("metrics").at(0);
    for (const Json& run : report.at("runs")) {
      if (run.at("name") != report.at("best")) continue;
      rows.push_back({task, run.at("name"), metric, MetricText(run.at("dev"), metric)});
    }
  }
  PrintTable(rows);
}

// The tasks that have data, in the order in which they run.
struct GluePlan {
  std::vector<std::pair<const GlueTask*, std::unique_ptr<FinetuneTask>>> tasks;
  Json skipped = Json::object();  // the others, and why
};

// Everything is read before the first run, so that errors come early.
absl::StatusOr<GluePlan> PlanTasks(const CommandLine& line) {
  if (line.Has("train") || line.Has("dev")) return Usage("--train and --dev are of one task");
  HIPPODROME_RETURN_IF_ERROR(line.Required("data-dir").status());
  GluePlan plan;
  for (const GlueTask* glue : TrainedTasks()) {
    auto task = MakeGlue(line, *glue);
    if (absl::IsNotFound(task.status())) {
      plan.skipped[glue->name] = Message(task.status());
      continue;
    }
    HIPPODROME_RETURN_IF_ERROR(task.status());
    plan.tasks.emplace_back(glue, *std::move(task));
  }
  if (!plan.tasks.empty()) return plan;
  return FailedPrecondition("no task of GLUE has data; " + plan.skipped.dump());
}

absl::Status FinetuneAll(const CommandLine& line, const std::string& out) {
  HIPPODROME_ASSIGN_OR_RETURN(const FinetuneOptions common, ReadOptions(line, "glue"));
  HIPPODROME_ASSIGN_OR_RETURN(const GluePlan plan, PlanTasks(line));
  Json reports = Json::object();
  for (const auto& [glue, task] : plan.tasks) {
    FinetuneOptions options = common;
    options.runs = out + "/runs/" + glue->name;
    options.result = out + "/models/" + glue->name;
    if (reports.contains(glue->begins_with)) {
      options.model = reports[glue->begins_with].at("best_model");
    }
    HIPPODROME_ASSIGN_OR_RETURN(const std::optional<Json> report, Finetune(*task, options));
    if (!report.has_value()) return Stopped();
    PrintFinetuneReport(*report);
    reports[glue->name] = *report;
  }
  PrintBest(reports);
  Json report = Json::object();
  report["task"] = "glue";
  report["tasks"] = std::move(reports);
  report["skipped"] = plan.skipped;
  return Report(line, report);
}

absl::Status RunFinetune(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto ranks, OpenCommunicator());
  if (ranks != nullptr && ranks->size() > 1) {
    return FailedPrecondition(
        "runs in one process, not in several of mpirun or srun; hippodrome train takes the run "
        "files that it writes");
  }
  const std::string& name = line.positional().at(0);
  HIPPODROME_ASSIGN_OR_RETURN(std::string out, line.Required("out"));
  out = Absolute(out);
  if (name == "glue") return FinetuneAll(line, out);
  if (name == "squad") {
    HIPPODROME_ASSIGN_OR_RETURN(const auto task, MakeSquad(line));
    return FinetuneOne(line, *task, out);
  }
  const GlueTask* glue = FindGlueTask(name);
  if (glue == nullptr || glue->train.empty()) {
    return Usage("'" + OneLine(name) + "' is none of " + TrainedTaskNames());
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto task, MakeGlue(line, *glue));
  return FinetuneOne(line, *task, out);
}

}  // namespace

int FinetuneCommand(int argc, char** argv) {
  return RunCommand(argc, argv, FinetuneSpec(), RunFinetune);
}

}  // namespace hippodrome
