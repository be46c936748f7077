#include "tools/evaluate/encoders/glue_tasks.h"

#include <algorithm>

namespace hippodrome {
namespace {

const std::vector<std::string> kBinary = {"0", "1"};
const std::vector<std::string> kEntailment = {"entailment", "not_entailment"};
const std::vector<std::string> kInference = {"entailment", "neutral", "contradiction"};

const GlueTask kGlueTasks[] = {
    {.name = "cola",
     .metrics = GlueMetrics::kMatthewsCorrelation,
     .layout = {.first = "3", .label = "1"},
     .labels = kBinary,
     .classes = {"unacceptable", "acceptable"}},
    {.name = "sst2",
     .layout = {.header = true, .first = "sentence", .label = "label"},
     .labels = kBinary,
     .classes = {"negative", "positive"}},
    {.name = "mrpc",
     .metrics = GlueMetrics::kAccuracyAndF1,
     .layout = {.header = true, .first = "#1 String", .second = "#2 String", .label = "Quality"},
     .labels = kBinary,
     .classes = {"not_equivalent", "equivalent"}},
    // Some lines of the published file have lost fields.
    {.name = "qqp",
     .metrics = GlueMetrics::kAccuracyAndF1,
     .layout = {.header = true,
                .first = "question1",
                .second = "question2",
                .label = "is_duplicate",
                .skip_broken = true},
     .labels = kBinary,
     .classes = {"not_duplicate", "duplicate"}},
    {.name = "stsb",
     .metrics = GlueMetrics::kCorrelations,
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "score"}},
    // "-": the annotators did not agree.
    {.name = "mnli",
     .layout = {.header = true,
                .first = "sentence1",
                .second = "sentence2",
                .label = "gold_label",
                .unlabelled = "-"},
     .labels = kInference,
     .classes = kInference},
    {.name = "qnli",
     .layout = {.header = true, .first = "question", .second = "sentence", .label = "label"},
     .labels = kEntailment,
     .classes = kEntailment},
    {.name = "rte",
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "label"},
     .labels = kEntailment,
     .classes = kEntailment},
    {.name = "wnli",
     .layout = {.header = true, .first = "sentence1", .second = "sentence2", .label = "label"},
     .labels = kBinary,
     .classes = {"not_entailment", "entailment"}},
};

}  // namespace

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
