// The tasks of GLUE as their files are laid out.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_TASKS_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_TASKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/evaluate/labelled_texts.h"

namespace hippodrome {

// What is reported of a task, as on GLUE's leaderboard.
enum class GlueMetrics : uint8_t {
  kAccuracy,
  kAccuracyAndF1,        // of class 1
  kMatthewsCorrelation,  // and accuracy
  kCorrelations,         // Pearson and Spearman, of a score instead of classes
};

struct GlueTask {
  std::string name;   // "sst2"
  std::string file;   // where labelled examples are in GLUE's folder: "SST-2/dev.tsv"
  std::string model;  // the task whose models it takes; empty: its own
  std::string train;  // where examples to train on are; empty: there are none
  // The task from whose model training goes on, as in Table 1 of the BiGS paper; empty: none.
  std::string begins_with;
  GlueMetrics metrics = GlueMetrics::kAccuracy;
  TableLayout layout;
  std::vector<std::string> labels;   // as they stand in the data, in GLUE's order; none: a score
  std::vector<std::string> classes;  // what they mean
};

// All tasks, each matched and mismatched part, and the diagnostic set ("ax").
std::span<const GlueTask> GlueTasks();

// "cola|sst2|..", all their names.
const std::string& GlueTaskNames();

// The task called `name`, or null.
const GlueTask* FindGlueTask(std::string_view name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_GLUE_TASKS_H_
