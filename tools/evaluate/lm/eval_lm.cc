// `hippodrome eval lm`.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/lm/few_shot.h"
#include "tools/evaluate/lm/lm_report.h"
#include "tools/evaluate/lm/run_lm_task.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kLmSpec = {
    .name = "eval lm",
    .summary = "Evaluates a decoder on tasks for language models.",
    .usage = {"TASK... --model DIR --data FILE|DIR [OPTION]...", "--list"},
    .description =
        "Questions and figures are those of lm-evaluation-harness, where it has the task. A task "
        "is "
        "one that --list names, or a JSON file of one's own.",
    .arguments = {{"TASK", "what to evaluate", true, true}},
    .options = {
        {"list", "", "say which tasks there are, and which files they look for in a directory"},
        ModelOption(),
        DataOption("the documents, or a directory that has those of all tasks"),
        {"compare", "DIR", "another model: report by how much the first one is better, or worse"},
        {"shots", "N", "examples with their answers before each question", "0"},
        {"examples", "FILE",
         "what examples are taken from (default: what the task looks for in the directory)"},
        {"seed", "N", "of the choice of examples, as in lm-evaluation-harness", "1234"},
        {"limit", "N", "only so many questions of each task, its first ones"},
        {"max-length", "N",
         "tokens of a request, of which the model reads all but one, as in lm-evaluation-harness: "
         "longer contexts lose their beginning, texts are read in windows (default: any)"},
        {"stride", "N", "new tokens in each window of a text (default: the whole window)"},
        {"samples", "FILE", "write each question and what the model said, as JSON lines"},
        WeightsOption(),
        DeviceOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
        JsonOption()}};

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

struct LmOptions {
  std::vector<std::string> tasks;
  std::string data;
  std::string examples;  // empty: of the task
  int64_t shots = 0;
  int64_t seed = 0;
  int64_t limit = kMost;
  LmLengths lengths;
};

absl::StatusOr<LmOptions> ReadLmOptions(const CommandLine& line) {
  LmOptions options{.tasks = line.positional(), .examples = line.Text("examples")};
  if (options.tasks.empty()) return Usage("expected a task; --list says which there are");
  HIPPODROME_ASSIGN_OR_RETURN(options.data, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(options.shots, line.Integer("shots", 0, 1000));
  HIPPODROME_ASSIGN_OR_RETURN(options.seed,
                              line.Integer("seed", 0, std::numeric_limits<uint32_t>::max()));
  HIPPODROME_ASSIGN_OR_RETURN(options.limit, line.Integer("limit", kMost, 1, kMost));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t length, line.Integer("max-length", 0, 0, kMost));
  if (length > 0 && length < 3) return Usage("--max-length: expected 3 or more");
  options.lengths.most = length == 0 ? 0 : length - 1;
  const int64_t window = length == 0 ? 0 : length - 2;
  HIPPODROME_ASSIGN_OR_RETURN(options.lengths.stride, line.Integer("stride", 0, 0, window));
  return options;
}

// Where in `data`, a file or a directory, the first of `names` is.
absl::StatusOr<std::string> FindData(const std::string& data, const std::vector<std::string>& names,
                                     const LmTask& task) {
  if (!std::filesystem::is_directory(data)) return data;
  std::string all;
  for (const std::string& name : names) {
    const std::string path = (std::filesystem::path(data) / name).string();
    if (std::filesystem::exists(path)) return path;
    all += (all.empty() ? "" : ", ") + name;
  }
  return absl::NotFoundError(data + " has none of " + (all.empty() ? "no files" : all) +
                             ", which " + task.name + " looks for");
}

absl::StatusOr<std::vector<NumberedDocument>> ReadFile(const LmTask& task,
                                                       const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  auto documents = ReadDocuments(text, task.form);
  if (documents.ok()) documents = PrepareDocuments(task, *std::move(documents));
  if (!documents.ok()) return InFile(path, documents.status());
  return documents;
}

// The examples of questions, drawn one question after the other.
class Examples {
 public:
  static absl::StatusOr<Examples> Read(const LmTask& task, const LmOptions& options,
                                       const std::string& questions) {
    Examples examples(options);
    if (options.shots == 0) return examples;
    std::string path = options.examples;
    if (path.empty()) {
      HIPPODROME_ASSIGN_OR_RETURN(path, FindData(options.data, task.examples, task));
    }
    HIPPODROME_ASSIGN_OR_RETURN(const auto documents, ReadFile(task, path));
    for (const NumberedDocument& document : documents) {
      auto text = ExampleText(task, document);
      if (!text.ok()) return InFile(path, text.status());
      examples.texts_.push_back(*std::move(text));
      examples.documents_.push_back(document.document);
    }
    std::error_code ignored;
    const bool same = std::filesystem::equivalent(path, questions, ignored);
    examples.drawn_ += same || task.spare_example ? 1 : 0;
    const auto needed = static_cast<int64_t>(examples.drawn_);
    if (std::ssize(examples.texts_) >= needed) return examples;
    return InFile(path,
                  InvalidArgument(fmt::format("it has {} documents, expected {} for {} shots",
                                              examples.texts_.size(), needed, options.shots)));
  }

  // Where the question is among them, the others.
  std::vector<std::string> Draw(const Document& question) {
    std::vector<std::string> shown;
    if (shots_ == 0) return shown;
    for (const size_t i : sampler_.Sample(texts_.size(), drawn_)) {
      const bool other = drawn_ == shots_ || documents_[i] != question;
      if (other && shown.size() < shots_) shown.push_back(texts_[i]);
    }
    return shown;
  }

 private:
  explicit Examples(const LmOptions& options)
      : shots_(static_cast<size_t>(options.shots)),
        drawn_(shots_),
        sampler_(static_cast<uint32_t>(options.seed)) {}

  size_t shots_;
  size_t drawn_;  // for each question, of which so many are shown
  PythonSampler sampler_;
  std::vector<Document> documents_;
  std::vector<std::string> texts_;
};

struct PreparedTask {
  LmTask task;
  std::string path;
  std::vector<LmQuestion> questions;
};

absl::StatusOr<PreparedTask> Prepare(const std::string& name, const LmOptions& options) {
  PreparedTask prepared;
  HIPPODROME_ASSIGN_OR_RETURN(prepared.task, FindLmTask(name));
  const LmTask& task = prepared.task;
  HIPPODROME_ASSIGN_OR_RETURN(prepared.path, FindData(options.data, task.data, task));
  HIPPODROME_ASSIGN_OR_RETURN(auto documents, ReadFile(task, prepared.path));
  HIPPODROME_ASSIGN_OR_RETURN(Examples examples, Examples::Read(task, options, prepared.path));
  documents.resize(std::min<size_t>(documents.size(), static_cast<size_t>(options.limit)));
  for (const NumberedDocument& document : documents) {
    auto question = AskQuestion(task, document, examples.Draw(document.document));
    if (!question.ok()) return InFile(prepared.path, question.status());
    prepared.questions.push_back(*std::move(question));
  }
  return prepared;
}

using SampleSink = std::function<void(const LmAnswer& answer, const LmQuestion& question)>;

// With progress, which says what the first figure is so far.
absl::StatusOr<std::vector<LmOutcome>> Run(DecoderSession& session, const PreparedTask& prepared,
                                           const LmOptions& options, const SampleSink& sample) {
  std::vector<LmOutcome> outcomes;
  Progress progress("eval lm " + prepared.task.name);
  const auto sink = [&](std::span<const LmAnswer> answers) {
    for (const LmAnswer& answer : answers) {
      sample(answer, prepared.questions[outcomes.size()]);
      outcomes.push_back(answer.outcome);
    }
    std::vector<size_t> all(outcomes.size());
    std::iota(all.begin(), all.end(), 0);
    const std::string& metric = prepared.task.metrics.front();
    progress.Update(std::ssize(outcomes), std::ssize(prepared.questions),
                    fmt::format("{} {:.4f}", metric, LmFigure(metric, outcomes)(all)));
    return absl::OkStatus();
  };
  const absl::Status status =
      RunLmTask(session, prepared.task, prepared.questions, options.lengths, sink);
  if (!status.ok()) return InFile(prepared.path, status);
  return outcomes;
}

absl::Status ListTasks() {
  for (const auto& [name, text] : BuiltInLmTasks()) {
    HIPPODROME_ASSIGN_OR_RETURN(const LmTask task, ParseLmTask(std::string(text)));
    std::string files;
    for (const std::string& file : task.data) files += (files.empty() ? "" : ", ") + file;
    fmt::print("{:<14} {}\n{:<14} {}\n", name, task.title, "", files);
  }
  return absl::OkStatus();
}

struct TaskResult {
  std::vector<LmOutcome> outcomes;
  nlohmann::ordered_json report;
};

// A model, or two that are compared, on all tasks.
class Evaluation {
 public:
  Evaluation(const CommandLine& line, const LmOptions& options) : line_(line), options_(options) {}

  absl::Status Run(const std::vector<PreparedTask>& tasks) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line_.Required("model"));
    HIPPODROME_RETURN_IF_ERROR(OpenSamples());
    HIPPODROME_ASSIGN_OR_RETURN(const auto mine, RunAll(directory, tasks));
    samples_.close();
    std::vector<TaskResult> others;
    if (line_.Has("compare")) {
      HIPPODROME_ASSIGN_OR_RETURN(others, RunAll(line_.Text("compare"), tasks));
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      nlohmann::ordered_json report = {{"task", tasks[i].task.name}};
      report.update(mine[i].report);
      if (!others.empty()) {
        report["compared"] = LmComparison(tasks[i].task, mine[i].outcomes, others[i].outcomes);
      }
      reports_.push_back(std::move(report));
    }
    return absl::OkStatus();
  }

  nlohmann::json Json() const {
    return {{"task", "lm"},
            {"weights", weights_},
            {"shots", options_.shots},
            {"seed", options_.seed},
            {"tasks", reports_}};
  }

 private:
  absl::Status OpenSamples() {
    if (!line_.Has("samples")) return absl::OkStatus();
    samples_.open(line_.Text("samples"));
    if (!samples_) return InvalidArgument("cannot write " + line_.Text("samples"));
    return absl::OkStatus();
  }

  // While the file is open: of the first model.
  void WriteSample(const LmTask& task, const LmAnswer& answer, const LmQuestion& question) {
    if (!samples_.is_open()) return;
    nlohmann::ordered_json line = {{"task", task.name}, {"line", question.line}};
    if (!question.prompt.empty()) line["asked"] = {question.prompt};
    for (const TextContinuation& scored : question.scored) {
      line["asked"].push_back({scored.context, scored.continuation});
    }
    line.update(answer.record);
    samples_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }

  absl::StatusOr<std::vector<TaskResult>> RunAll(const std::string& directory,
                                                 const std::vector<PreparedTask>& tasks) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto session, DecoderSession::Open(line_, directory));
    if (weights_.empty()) weights_ = WeightsName(session->weights());
    std::vector<TaskResult> all;
    for (const PreparedTask& prepared : tasks) {
      const auto sample = [&](const LmAnswer& answer, const LmQuestion& question) {
        WriteSample(prepared.task, answer, question);
      };
      TaskResult result;
      HIPPODROME_ASSIGN_OR_RETURN(result.outcomes,
                                  hippodrome::Run(*session, prepared, options_, sample));
      result.report = LmReport(prepared.task, result.outcomes);
      fmt::print(stderr, "{}: {}: {}\n", directory, prepared.task.name,
                 LmReportLine(prepared.task, result.report));
      all.push_back(std::move(result));
    }
    return all;
  }

  const CommandLine& line_;
  const LmOptions& options_;
  std::ofstream samples_;
  std::string weights_;
  nlohmann::ordered_json reports_ = nlohmann::ordered_json::array();
};

absl::Status EvaluateLm(const CommandLine& line) {
  if (line.Has("list")) return ListTasks();
  HIPPODROME_ASSIGN_OR_RETURN(const LmOptions options, ReadLmOptions(line));
  std::vector<PreparedTask> tasks;
  for (const std::string& name : options.tasks) {
    HIPPODROME_ASSIGN_OR_RETURN(PreparedTask prepared, Prepare(name, options));
    tasks.push_back(std::move(prepared));
  }
  Evaluation evaluation(line, options);
  HIPPODROME_RETURN_IF_ERROR(evaluation.Run(tasks));
  return Report(line, evaluation.Json());
}

}  // namespace

int EvalLm(int argc, char** argv) { return RunCommand(argc, argv, kLmSpec, EvaluateLm); }

}  // namespace hippodrome
