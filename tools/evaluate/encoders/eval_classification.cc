#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/classify_texts.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/label_names.h"
#include "tools/evaluate/metrics.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kClassificationSpec = EncoderCommand({
    .name = "eval classification",
    .summary = "Evaluates a classifier on the texts in a table.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description = "Labels are the model's, or numbers of them from 0.",
    .options = {DataOption("tab-separated table"),
                {"label", "COLUMN",
                 "where the label is: a number from 0 or, with --header, a name in the first line",
                 "0"},
                {"text", "COLUMN", "where the text is", "1"},
                {"pair", "COLUMN", "where a second text is (default: there is none)"},
                {"header", "", "the first line names the columns"}},
});

// The labels as the data has them: the model's names, or their numbers.
std::vector<std::string> NamesInData(const BigsConfig& config, std::string_view some_label) {
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < config.num_labels(); ++i) numbers.push_back(std::to_string(i));
  const auto& names = config.labels;
  const bool by_name = std::find(names.begin(), names.end(), some_label) != names.end();
  const bool by_number = std::find(numbers.begin(), numbers.end(), some_label) != numbers.end();
  return by_number && !by_name ? numbers : names;
}

absl::Status EvaluateClassification(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string table, ReadDataFile(path));
  const TableLayout layout = {.header = line.Has("header"),
                              .first = line.Text("text"),
                              .second = line.Text("pair"),
                              .label = line.Text("label")};
  const auto texts = ReadLabelledTexts(table, layout);
  if (!texts.ok()) return InFile(path, texts.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kSequenceClassification}));
  const auto classes =
      ClassesOf(texts->examples, NamesInData(session->config(), texts->examples[0].label));
  if (!classes.ok()) return InFile(path, classes.status());
  HIPPODROME_ASSIGN_OR_RETURN(const TextLogits logits,
                              ClassifyTexts(*session, "eval classification", *texts));
  const std::vector<int64_t> predictions = LargestOutputs(logits);
  const int64_t labels = session->config().num_labels();
  const Metric metrics[] = {
      {"accuracy",
       [&](std::span<const size_t> places) {
         return Accuracy(ValuesAt(places, predictions), ValuesAt(places, *classes));
       }},
      {"macro_f1",
       [&](std::span<const size_t> places) {
         return MacroF1(ValuesAt(places, predictions), ValuesAt(places, *classes), labels);
       }},
  };
  nlohmann::json json = session->Description();
  json.update({{"task", "classification"},
               {"examples", texts->examples.size()},
               {"truncated", logits.truncated}});
  json.update(MetricReport(std::ssize(predictions), metrics));
  return Report(line, json);
}

}  // namespace

int EvalClassification(int argc, char** argv) {
  return RunCommand(argc, argv, kClassificationSpec, EvaluateClassification);
}

}  // namespace hippodrome
