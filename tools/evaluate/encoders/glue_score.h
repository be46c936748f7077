// A classifier's score in a task of GLUE.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_SCORE_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_SCORE_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/labelled_texts.h"

namespace hippodrome {

// What is right, or what a model says, of each example.
struct GlueLabels {
  std::vector<int64_t> classes;
  std::vector<double> scores;  // in place of classes, of tasks that have them
};

// Errors: kInvalidArgument with the line whose label is none of the task's.
absl::StatusOr<GlueLabels> ReadGlueLabels(const GlueTask& task, const LabelledTexts& texts);

// A file of a task.
struct GlueData {
  std::unique_ptr<std::string> table;  // what `texts` are views into
  LabelledTexts texts;
  GlueLabels labels;
};

// Errors, with the path: of reading, and those of ReadLabelledTexts() and ReadGlueLabels().
absl::StatusOr<GlueData> ReadGlueData(const GlueTask& task, const std::string& path);

// Whether it asks for a score instead of a class.
bool HasScores(const GlueTask& task);

// kFailedPrecondition when the model has not as many outputs as the task has labels.
absl::Status CheckGlueModel(const GlueTask& task, const BigsConfig& config);

struct GluePredictions {
  GlueLabels labels;
  int64_t truncated = 0;  // texts that were too long
};

// Outputs are taken by name where the model's labels are the task's, else in order. Errors: as of
// EncoderSession::Run(). REQUIRES: CheckGlueModel().
absl::StatusOr<GluePredictions> PredictGlue(EncoderSession& session, const GlueTask& task,
                                            const LabelledTexts& texts);

// The task's metrics, the first of them the one that the BiGS paper reports. The labels must
// outlive them.
std::vector<Metric> GlueMetricsOf(const GlueTask& task, const GlueLabels& predictions,
                                  const GlueLabels& labels);

// The report of a task.
nlohmann::json GlueReport(const EncoderSession& session, const GlueTask& task,
                          const LabelledTexts& texts, const GluePredictions& predictions,
                          const GlueLabels& labels);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_SCORE_H_
