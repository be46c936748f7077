#include "tools/train/finetune/finetune_task.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/answer_squad.h"
#include "tools/evaluate/encoders/glue_score.h"

namespace hippodrome {
namespace {

// As the run file has it: a number where the table has no header.
std::optional<DataColumn> ColumnOf(const TableLayout& layout, const std::string& column) {
  if (column.empty()) return std::nullopt;
  if (layout.header) return DataColumn(column);
  return DataColumn(std::stoll(column));
}

class GlueFinetuneTask final : public FinetuneTask {
 public:
  GlueFinetuneTask(const GlueTask& task, FinetuneFiles files, GlueData dev)
      : task_(task), files_(std::move(files)), dev_(std::move(dev)) {}

  const std::string& name() const override { return task_.name; }
  EncoderHead head() const override { return EncoderHead::kSequenceClassification; }
  int64_t Length(int64_t positions) const override {
    constexpr int64_t kUsual = 128;  // sentences are short
    return std::min(positions, kUsual);
  }
  void Describe(TrainingRun& run) const override {
    const TableLayout& layout = task_.layout;
    run.objective = HasScores(task_) ? Objective::kRegression : Objective::kClassification;
    run.data = {.train = {files_.train},
                .valid = {files_.dev},
                .text = ColumnOf(layout, layout.first),
                .pair = ColumnOf(layout, layout.second),
                .label = ColumnOf(layout, layout.label),
                .header = layout.header,
                .labels = task_.labels,
                .classes = task_.classes,
                .skip_broken = layout.skip_broken,
                .unlabelled = layout.unlabelled};
  }
  std::vector<std::string> Metrics() const override {
    std::vector<std::string> names;
    for (const Metric& metric : GlueMetricsOf(task_, {}, {})) names.push_back(metric.name);
    return names;
  }
  absl::StatusOr<nlohmann::json> Judge(EncoderSession& session) const override {
    HIPPODROME_RETURN_IF_ERROR(CheckGlueModel(task_, session.config()));
    HIPPODROME_ASSIGN_OR_RETURN(const GluePredictions predictions,
                                PredictGlue(session, task_, dev_.texts));
    return GlueReport(session, task_, dev_.texts, predictions, dev_.labels);
  }

 private:
  const GlueTask& task_;
  const FinetuneFiles files_;
  const GlueData dev_;
};

class SquadFinetuneTask final : public FinetuneTask {
 public:
  SquadFinetuneTask(FinetuneFiles files, SquadFile dev)
      : files_(std::move(files)), dev_(std::move(dev)) {}

  const std::string& name() const override { return name_; }
  EncoderHead head() const override { return EncoderHead::kQuestionAnswering; }
  int64_t Length(int64_t positions) const override { return positions; }
  void Describe(TrainingRun& run) const override {
    run.objective = Objective::kQuestionAnswering;
    run.data = {.train = {files_.train}, .valid = {files_.dev}};
  }
  std::vector<std::string> Metrics() const override { return {"f1", "exact_match"}; }
  absl::StatusOr<nlohmann::json> Judge(EncoderSession& session) const override {
    HIPPODROME_ASSIGN_OR_RETURN(const SquadAnswers answers, AnswerSquad(session, dev_));
    return SquadReport(session, answers);
  }

 private:
  const std::string name_ = "squad";
  const FinetuneFiles files_;
  const SquadFile dev_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeGlueFinetuneTask(const GlueTask& task,
                                                                   const FinetuneFiles& files) {
  HIPPODROME_ASSIGN_OR_RETURN(GlueData dev, ReadGlueData(task, files.dev));
  return std::make_unique<GlueFinetuneTask>(task, files, std::move(dev));
}

absl::StatusOr<std::unique_ptr<FinetuneTask>> MakeSquadFinetuneTask(const FinetuneFiles& files) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(files.dev));
  auto dev = ParseSquad(text);
  if (!dev.ok()) return InFile(files.dev, dev.status());
  return std::make_unique<SquadFinetuneTask>(files, *std::move(dev));
}

}  // namespace hippodrome
