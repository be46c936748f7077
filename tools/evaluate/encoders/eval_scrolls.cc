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
#include "tools/evaluate/encoders/scrolls_file.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/label_names.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

// SCROLLS' metric, in percent, of examples that are right (100) or wrong (0).
nlohmann::json ExactMatch(const std::vector<double>& right) {
  const Metric metric = {"exact_match", MeanOfExamples(right)};
  nlohmann::json report = MetricReport(std::ssize(right), std::span(&metric, 1));
  report["examples"] = right.size();
  return report;
}

// ---- ContractNLI -------------------------------------------------------------------------------

const CommandSpec kContractNliSpec = EncoderCommand({
    .name = "eval contract_nli",
    .summary = "Evaluates a classifier on ContractNLI of SCROLLS.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "The pair is the hypothesis, which ends at the first blank line, and all of the contract, "
        "as far as the model takes it. The model's labels are Contradiction, Entailment and Not "
        "mentioned, by name or else in this order.",
    .options = {DataOption("validation.jsonl")},
});

absl::Status EvaluateContractNli(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  const auto contracts = ReadContractNli(text);
  if (!contracts.ok()) return InFile(path, contracts.status());
  LabelledTexts texts = {.pairs = true};
  for (const ContractExample& example : *contracts) {
    texts.examples.push_back({example.line, example.hypothesis, example.contract, example.label});
  }
  const std::vector<std::string> labels = {"Contradiction", "Entailment", "Not mentioned"};
  const auto classes = ClassesOf(texts.examples, labels);
  if (!classes.ok()) return InFile(path, classes.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kSequenceClassification}));
  if (session->config().num_labels() != std::ssize(labels)) {
    return FailedPrecondition("the model has " + std::to_string(session->config().num_labels()) +
                              " label(s), but contract_nli has 3");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const TextLogits logits,
                              ClassifyTexts(*session, "eval contract_nli", texts));
  const std::vector<int64_t> class_of = ClassOfOutputs(session->config().labels, labels);
  const std::vector<int64_t> outputs = LargestOutputs(logits);
  std::vector<double> right;
  for (size_t i = 0; i < outputs.size(); ++i) {
    right.push_back(class_of[outputs[i]] == (*classes)[i] ? 100 : 0);
  }
  nlohmann::json report = session->Description();
  report.update({{"task", "contract_nli"}, {"truncated", logits.truncated}});
  report.update(ExactMatch(right));
  return Report(line, report);
}

// ---- QuALITY -----------------------------------------------------------------------------------

const CommandSpec kQualitySpec = EncoderCommand({
    .name = "eval quality",
    .summary = "Evaluates a model that chooses among answers on QuALITY of SCROLLS.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "Each option is scored as the pair of question and option, and article, as far as the "
        "model takes it: by a multiple choice model or a classifier with one label, by its logit; "
        "by one with two, by how far that of the second, right, is above that of the first.",
    .options = {DataOption("validation.jsonl")},
});

// "question option" of each option of each question.
std::vector<std::string> QuestionsWithOptions(const std::vector<QualityQuestion>& questions) {
  std::vector<std::string> texts;
  for (const QualityQuestion& question : questions) {
    for (const std::string& option : question.options) {
      texts.push_back(question.question + " " + option);
    }
  }
  return texts;
}

// Each of these before its article.
LabelledTexts WithArticles(const std::vector<std::string>& texts,
                           const std::vector<QualityQuestion>& questions) {
  LabelledTexts pairs = {.pairs = true};
  auto text = texts.begin();
  for (const QualityQuestion& question : questions) {
    for (size_t i = 0; i < question.options.size(); ++i) {
      pairs.examples.push_back({question.line, *text++, question.article, ""});
    }
  }
  return pairs;
}

// How well each text is an answer.
std::vector<double> AnswerScores(const TextLogits& logits) {
  std::vector<double> scores;
  for (auto row = logits.values.begin(); row != logits.values.end(); row += logits.labels) {
    scores.push_back(logits.labels == 1 ? double{row[0]} : double{row[1]} - double{row[0]});
  }
  return scores;
}

absl::Status CheckChooser(const BigsConfig& config) {
  if (config.head == EncoderHead::kMultipleChoice || config.num_labels() <= 2) {
    return absl::OkStatus();
  }
  return FailedPrecondition("the model has " + std::to_string(config.num_labels()) +
                            " label(s), expected 1 or 2, or a multiple choice model");
}

absl::Status EvaluateQuality(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  const auto questions = ReadQuality(text);
  if (!questions.ok()) return InFile(path, questions.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kMultipleChoice,
                                                          EncoderHead::kSequenceClassification}));
  HIPPODROME_RETURN_IF_ERROR(CheckChooser(session->config()));
  const std::vector<std::string> texts = QuestionsWithOptions(*questions);
  HIPPODROME_ASSIGN_OR_RETURN(
      const TextLogits logits,
      ClassifyTexts(*session, "eval quality", WithArticles(texts, *questions)));
  const std::vector<double> scores = AnswerScores(logits);
  std::vector<double> right;
  std::vector<double> hard;
  for (size_t i = 0; i < questions->size(); ++i) {
    const QualityQuestion& question = (*questions)[i];
    const auto first = scores.begin() + static_cast<int64_t>(i * question.options.size());
    const auto best = std::max_element(first, first + std::ssize(question.options));
    right.push_back(static_cast<size_t>(best - first) == question.gold ? 100 : 0);
    if (question.hard) hard.push_back(right.back());
  }
  nlohmann::json report = session->Description();
  report.update({{"task", "quality"}, {"truncated", logits.truncated}});
  report.update(ExactMatch(right));
  if (!hard.empty()) report["hard"] = ExactMatch(hard);
  return Report(line, report);
}

}  // namespace

int EvalContractNli(int argc, char** argv) {
  return RunCommand(argc, argv, kContractNliSpec, EvaluateContractNli);
}

int EvalQuality(int argc, char** argv) {
  return RunCommand(argc, argv, kQualitySpec, EvaluateQuality);
}

}  // namespace hippodrome
