#include "tools/evaluate/encoders/glue_tasks.h"

#include <algorithm>

namespace hippodrome {
namespace {

const std::vector<std::string> kBinary = {"0", "1"};
const std::vector<std::string> kEntailment = {"entailment", "not_entailment"};
const std::vector<std::string> kInference = {"entailment", "neutral", "contradiction"};

// "-": the annotators did not agree.
const TableLayout kMnliLayout = {.header = true,
                                 .first = "sentence1",
                                 .second = "sentence2",
                                 .label = "gold_label",
                                 .unlabelled = "-"};

const GlueTask kGlueTasks[] = {
    {.name = "cola",
     .file = "CoLA/dev.tsv",
     .train = "CoLA/train.tsv",
     .metrics = GlueMetrics::kMatthewsCorrelation,
     .layout = {.first = "3", .label = "1"},
     .labels = kBinary,
     .classes = {"unacceptable", "acceptable"}},
    {.name = "sst2",
     .file = "SST-2/dev.tsv",
     .train = "SST-2/train.tsv",
     .layout = {.header = true, .first = "sentence", .label = "label"},
     .labels = kBinary,
     .classes = {"negative", "positive"}},
    {.name = "mrpc",
     .file = "MRPC/dev.tsv",
     .train = "MRPC/train.tsv",
     .begins_with = "mnli",
     .metrics = GlueMetrics::kAccuracyAndF1,
     .layout = {.header = true, .first = "#1 String", .second = "#2 String", .label = "Quality"},
     .labels = kBinary,
     .classes = {"not_equivalent", "equivalent"}},
    // Some lines of the published file have lost fields.
    {.name = "qqp",
     .file = "QQP/dev.tsv",
     .train = "QQP/train.tsv",
     .metrics = GlueMetrics::kAccuracyAndF1,
     .layout = {.header = true,
                .first = "question1",
                .second = "question2",
                .label = "is_duplicate",
                .skip_broken = true},
     .labels = kBinary,
     .classes = {"not_duplicate", "duplicate"}},
    {.name = "stsb",
     .file = "STS-B/dev.tsv",
     .train = "STS-B/train.tsv",
     .begins_with = "mnli",
     .metrics = GlueMetrics::kCorrelations,
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "score"}},
    {.name = "mnli",
     .file = "MNLI/dev_matched.tsv",
     .train = "MNLI/train.tsv",
     .layout = kMnliLayout,
     .labels = kInference,
     .classes = kInference},
    {.name = "mnli_mismatched",
     .file = "MNLI/dev_mismatched.tsv",
     .model = "mnli",
     .layout = kMnliLayout,
     .labels = kInference,
     .classes = kInference},
    {.name = "qnli",
     .file = "QNLI/dev.tsv",
     .train = "QNLI/train.tsv",
     .layout = {.header = true, .first = "question", .second = "sentence", .label = "label"},
     .labels = kEntailment,
     .classes = kEntailment},
    {.name = "rte",
     .file = "RTE/dev.tsv",
     .train = "RTE/train.tsv",
     .begins_with = "mnli",
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "label"},
     .labels = kEntailment,
     .classes = kEntailment},
    {.name = "wnli",
     .file = "WNLI/dev.tsv",
     .train = "WNLI/train.tsv",
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "label"},
     .labels = kBinary,
     .classes = {"not_entailment", "entailment"}},
    // The published diagnostic.tsv has no labels; the full one has.
    {.name = "ax",
     .file = "diagnostic/diagnostic-full.tsv",
     .model = "mnli",
     .metrics = GlueMetrics::kMatthewsCorrelation,
     .layout = {.header = true, .first = "Premise", .second = "Hypothesis", .label = "Label"},
     .labels = kInference,
     .classes = kInference},
};

}  // namespace

std::span<const GlueTask> GlueTasks() { return kGlueTasks; }

const std::string& GlueTaskNames() {
  static const auto* const names = [] {
    auto* const joined = new std::string;
    for (const GlueTask& task : kGlueTasks) *joined += (joined->empty() ? "" : "|") + task.name;
    return joined;
  }();
  return *names;
}

const GlueTask* FindGlueTask(std::string_view name) {
  const auto* const end = std::end(kGlueTasks);
  const auto* const found = std::find_if(std::begin(kGlueTasks), end,
                                         [&](const GlueTask& task) { return task.name == name; });
  return found == end ? nullptr : found;
}

}  // namespace hippodrome
