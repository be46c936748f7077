#include "tools/evaluate/encoders/eval_glue.h"

#include <nlohmann/json.hpp>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoder_command.h"
#include "tools/evaluate/encoders/classify_texts.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/label_names.h"
#include "tools/evaluate/metrics.h"
#include "tools/evaluate/report.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

absl::StatusOr<bool> HasFeature(const TsvRow& row, size_t column, std::string_view name) {
  const std::string_view field = row.fields[column];
  if (field == "0" || field == "1") return field == "1";
  return InvalidArgument("line " + std::to_string(row.line) + ": " + OneLine(name) + " is '" +
                         OneLine(field) + "', expected 0 or 1");
}

CommandSpec GlueSpec(const std::string& task) {
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

// The classes that are predicted: outputs by name where the model knows the names, else in order.
std::vector<int64_t> PredictedClasses(const TextLogits& logits, const GlueTask& task,
                                      const BigsConfig& config) {
  const std::vector<int64_t> class_of = ClassOfOutputs(config.labels, task.classes);
  std::vector<int64_t> classes = LargestOutputs(logits);
  for (int64_t& output : classes) output = class_of[output];
  return classes;
}

// What is right: classes, or scores for tasks that have them.
struct Gold {
  std::vector<int64_t> classes;
  std::vector<double> scores;
};

absl::StatusOr<Gold> ReadGold(const GlueTask& task, const LabelledTexts& texts) {
  Gold gold;
  if (task.metrics == GlueMetrics::kCorrelations) {
    HIPPODROME_ASSIGN_OR_RETURN(gold.scores, ScoresOf(texts.examples));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(gold.classes, ClassesOf(texts.examples, task.labels));
  }
  return gold;
}

nlohmann::json Correlations(const TextLogits& logits, const std::vector<double>& scores) {
  const std::vector<double> predictions(logits.values.begin(), logits.values.end());
  return {{"pearson", Pearson(predictions, scores)}, {"spearman", Spearman(predictions, scores)}};
}

nlohmann::json ClassMetrics(GlueMetrics metrics, const std::vector<int64_t>& predictions,
                            const std::vector<int64_t>& classes) {
  nlohmann::json json = {{"accuracy", Accuracy(predictions, classes)}};
  if (metrics == GlueMetrics::kAccuracyAndF1) json["f1"] = F1(predictions, classes, 1);
  if (metrics == GlueMetrics::kMatthewsCorrelation) {
    json["matthews_correlation"] = MatthewsCorrelation(predictions, classes);
  }
  return json;
}

nlohmann::json Features(const ColaAnnotations& annotations, const std::vector<int64_t>& predictions,
                        const std::vector<int64_t>& classes) {
  nlohmann::json json;
  for (const auto& [feature, score] : ScoreFeatures(annotations, predictions, classes)) {
    json[feature] = {{"examples", score.examples},
                     {"matthews_correlation", score.matthews_correlation}};
  }
  return json;
}

absl::Status CheckOutputs(const GlueTask& task, const BigsConfig& config) {
  const bool scores = task.metrics == GlueMetrics::kCorrelations;
  const int64_t expected = scores ? 1 : std::ssize(task.labels);
  if (config.num_labels() == expected) return absl::OkStatus();
  return FailedPrecondition("the model has " + std::to_string(config.num_labels()) +
                            " label(s), but " + task.name + " has " + std::to_string(expected));
}

absl::StatusOr<std::string> DataPath(const CommandLine& line, const GlueTask& task) {
  if (!line.Has("annotations")) return line.Required("data");
  if (task.name != "cola") return Usage("--annotations are of cola");
  if (line.Has("data")) return Usage("give either --data or --annotations");
  return line.Required("annotations");
}

absl::Status EvaluateGlue(const CommandLine& line, const GlueTask& task) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, DataPath(line, task));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string table, ReadDataFile(path));
  const bool annotated = line.Has("annotations");
  const auto examples = ReadExamples(table, task, annotated);
  if (!examples.ok()) return InFile(path, examples.status());
  const LabelledTexts& texts = examples->texts;
  const auto gold = ReadGold(task, texts);
  if (!gold.ok()) return InFile(path, gold.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, EncoderHead::kSequenceClassification));
  HIPPODROME_RETURN_IF_ERROR(CheckOutputs(task, session->config()));
  HIPPODROME_ASSIGN_OR_RETURN(const TextLogits logits,
                              ClassifyTexts(*session, "eval " + task.name, texts));
  nlohmann::json json = session->Description();
  json.update({{"task", task.name},
               {"examples", texts.examples.size()},
               {"skipped", texts.skipped},
               {"truncated", logits.truncated}});
  if (task.metrics == GlueMetrics::kCorrelations) {
    json.update(Correlations(logits, gold->scores));
    return Report(line, json);
  }
  const std::vector<int64_t> predictions = PredictedClasses(logits, task, session->config());
  json.update(ClassMetrics(task.metrics, predictions, gold->classes));
  if (annotated) json["features"] = Features(*examples, predictions, gold->classes);
  return Report(line, json);
}

}  // namespace

absl::StatusOr<ColaAnnotations> ReadColaAnnotations(std::string_view table) {
  const std::vector<TsvRow> rows = ParseTsv(table);
  if (rows.empty()) return InvalidArgument("there is nothing in the table");
  ColaAnnotations annotations;
  HIPPODROME_ASSIGN_OR_RETURN(
      annotations.texts,
      ReadLabelledTexts(table, {.header = true, .first = "Sentence", .label = "Acceptability"}));
  HIPPODROME_ASSIGN_OR_RETURN(const size_t sentence, FindColumn(rows[0], "Sentence"));
  const std::vector<std::string_view>& names = rows[0].fields;
  for (size_t column = sentence + 1; column < names.size(); ++column) {
    std::vector<size_t>& examples = annotations.features[std::string(names[column])];
    for (size_t i = 1; i < rows.size(); ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(const bool has, HasFeature(rows[i], column, names[column]));
      if (has) examples.push_back(i - 1);
    }
  }
  return annotations;
}

std::map<std::string, FeatureScore> ScoreFeatures(const ColaAnnotations& annotations,
                                                  std::span<const int64_t> predictions,
                                                  std::span<const int64_t> labels) {
  std::map<std::string, FeatureScore> scores;
  for (const auto& [feature, examples] : annotations.features) {
    std::vector<int64_t> predicted;
    std::vector<int64_t> meant;
    for (const size_t example : examples) {
      predicted.push_back(predictions[example]);
      meant.push_back(labels[example]);
    }
    scores[feature] = {std::ssize(examples), MatthewsCorrelation(predicted, meant)};
  }
  return scores;
}

int EvalGlue(int argc, char** argv) {
  const GlueTask& task = *FindGlueTask(argv[0]);
  return RunCommand(argc, argv, GlueSpec(task.name),
                    [&](const CommandLine& line) { return EvaluateGlue(line, task); });
}

}  // namespace hippodrome
