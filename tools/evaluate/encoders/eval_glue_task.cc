#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/cola_annotations.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/glue_score.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

CommandSpec GlueTaskSpec(const std::string& task) {
  CommandSpec spec = EncoderCommand({
      .name = "eval " + task,
      .summary = "Evaluates a classifier on a task of GLUE.",
      .usage = {"--model DIR --data FILE [OPTION]..."},
      .description = "",
      .options =
          {DataOption("a table of the task with labels, dev.tsv"),
           {"annotations", "FILE",
            "of cola: its grammatical annotations, major or minor features, which are scored "
            "one by one"}},
  });
  if (task == "cola") spec.usage.emplace_back("--model DIR --annotations FILE [OPTION]...");
  return spec;
}

// The examples, and for annotated ones their features.
absl::StatusOr<ColaAnnotations> ReadExamples(const std::string& table, const GlueTask& task,
                                             bool annotated) {
  if (annotated) return ReadColaAnnotations(table);
  ColaAnnotations examples;
  HIPPODROME_ASSIGN_OR_RETURN(examples.texts, ReadLabelledTexts(table, task.layout));
  return examples;
}

// The score of the examples of each feature alone.
nlohmann::json FeatureReport(const GlueTask& task, const ColaAnnotations& annotations,
                             const GlueLabels& predictions, const GlueLabels& labels) {
  nlohmann::json report;
  for (const auto& [feature, examples] : annotations.features) {
    const GlueLabels predicted = {.classes = ValuesAt(examples, predictions.classes)};
    const GlueLabels meant = {.classes = ValuesAt(examples, labels.classes)};
    const std::vector<Metric> metrics = GlueMetricsOf(task, predicted, meant);
    report[feature] = MetricReport(std::ssize(examples), std::span(metrics).first(1));
    report[feature]["examples"] = examples.size();
  }
  return report;
}

absl::StatusOr<std::string> DataPath(const CommandLine& line, const GlueTask& task) {
  if (!line.Has("annotations")) return line.Required("data");
  if (task.name != "cola") return Usage("--annotations are of cola");
  if (line.Has("data")) return Usage("give either --data or --annotations");
  return line.Required("annotations");
}

absl::Status EvaluateGlueTask(const CommandLine& line, const GlueTask& task) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, DataPath(line, task));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string table, ReadDataFile(path));
  const bool annotated = line.Has("annotations");
  const auto examples = ReadExamples(table, task, annotated);
  if (!examples.ok()) return InFile(path, examples.status());
  const auto labels = ReadGlueLabels(task, examples->texts);
  if (!labels.ok()) return InFile(path, labels.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kSequenceClassification}));
  HIPPODROME_RETURN_IF_ERROR(CheckGlueModel(task, session->config()));
  HIPPODROME_ASSIGN_OR_RETURN(const GluePredictions predictions,
                              PredictGlue(*session, task, examples->texts));
  nlohmann::json report = GlueReport(*session, task, examples->texts, predictions, *labels);
  if (annotated) report["features"] = FeatureReport(task, *examples, predictions.labels, *labels);
  return Report(line, report);
}

}  // namespace

int EvalGlueTask(int argc, char** argv) {
  const GlueTask& task = *FindGlueTask(argv[0]);
  return RunCommand(argc, argv, GlueTaskSpec(task.name),
                    [&](const CommandLine& line) { return EvaluateGlueTask(line, task); });
}

}  // namespace hippodrome
