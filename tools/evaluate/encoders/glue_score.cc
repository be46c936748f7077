#include "tools/evaluate/encoders/glue_score.h"

#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/classify_texts.h"
#include "tools/evaluate/label_names.h"
#include "tools/evaluate/metrics.h"

namespace hippodrome {
namespace {

// `metric` of the labels of one kind, of some examples.
template <typename T, typename F>
FigureOf OfLabels(const std::vector<T>& predictions, const std::vector<T>& labels,
                  const F& metric) {
  return [&predictions, &labels, metric](std::span<const size_t> places) {
    return metric(ValuesAt(places, predictions), ValuesAt(places, labels));
  };
}

}  // namespace

bool HasScores(const GlueTask& task) { return task.metrics == GlueMetrics::kCorrelations; }

absl::StatusOr<GlueLabels> ReadGlueLabels(const GlueTask& task, const LabelledTexts& texts) {
  GlueLabels labels;
  if (HasScores(task)) {
    HIPPODROME_ASSIGN_OR_RETURN(labels.scores, ScoresOf(texts.examples));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(labels.classes, ClassesOf(texts.examples, task.labels));
  }
  return labels;
}

absl::StatusOr<GlueData> ReadGlueData(const GlueTask& task, const std::string& path) {
  GlueData data;
  HIPPODROME_ASSIGN_OR_RETURN(std::string table, ReadDataFile(path));
  data.table = std::make_unique<std::string>(std::move(table));
  auto texts = ReadLabelledTexts(*data.table, task.layout);
  if (!texts.ok()) return InFile(path, texts.status());
  data.texts = *std::move(texts);
  auto labels = ReadGlueLabels(task, data.texts);
  if (!labels.ok()) return InFile(path, labels.status());
  data.labels = *std::move(labels);
  return data;
}

absl::Status CheckGlueModel(const GlueTask& task, const BigsConfig& config) {
  const int64_t expected = HasScores(task) ? 1 : std::ssize(task.labels);
  if (config.num_labels() == expected) return absl::OkStatus();
  return FailedPrecondition("the model has " + std::to_string(config.num_labels()) +
                            " label(s), but " + task.name + " has " + std::to_string(expected));
}

absl::StatusOr<GluePredictions> PredictGlue(EncoderSession& session, const GlueTask& task,
                                            const LabelledTexts& texts) {
  HIPPODROME_ASSIGN_OR_RETURN(const TextLogits logits,
                              ClassifyTexts(session, "eval " + task.name, texts));
  GluePredictions predictions{.truncated = logits.truncated};
  if (HasScores(task)) {
    predictions.labels.scores.assign(logits.values.begin(), logits.values.end());
    return predictions;
  }
  const std::vector<int64_t> class_of = ClassOfOutputs(session.config().labels, task.classes);
  predictions.labels.classes = LargestOutputs(logits);
  for (int64_t& output : predictions.labels.classes) output = class_of[output];
  return predictions;
}

std::vector<Metric> GlueMetricsOf(const GlueTask& task, const GlueLabels& predictions,
                                  const GlueLabels& labels) {
  const auto of_classes = [&](const auto& metric) {
    return OfLabels(predictions.classes, labels.classes, metric);
  };
  const auto of_scores = [&](const auto& metric) {
    return OfLabels(predictions.scores, labels.scores, metric);
  };
  const Metric accuracy = {"accuracy", of_classes(Accuracy)};
  switch (task.metrics) {
    case GlueMetrics::kAccuracy:
      return {accuracy};
    case GlueMetrics::kAccuracyAndF1:
      return {{"f1", of_classes([](const auto& x, const auto& y) { return F1(x, y, 1); })},
              accuracy};
    case GlueMetrics::kMatthewsCorrelation:
      return {{"matthews_correlation", of_classes(MatthewsCorrelation)}, accuracy};
    case GlueMetrics::kCorrelations:
      return {{"spearman", of_scores(Spearman)}, {"pearson", of_scores(Pearson)}};
  }
  return {};
}

nlohmann::json GlueReport(const EncoderSession& session, const GlueTask& task,
                          const LabelledTexts& texts, const GluePredictions& predictions,
                          const GlueLabels& labels) {
  nlohmann::json report = session.Description();
  report.update({{"task", task.name},
                 {"examples", texts.examples.size()},
                 {"skipped", texts.skipped},
                 {"truncated", predictions.truncated}});
  report.update(
      MetricReport(std::ssize(texts.examples), GlueMetricsOf(task, predictions.labels, labels)));
  return report;
}

}  // namespace hippodrome
