#include "tools/train/run/run_data.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/labelled_texts.h"
#include "tools/evaluate/squad_file.h"
#include "tools/train/data/causal_lm.h"
#include "tools/train/data/masked_lm.h"
#include "tools/train/data/question_answering.h"
#include "tools/train/data/synthetic_tasks.h"
#include "tools/train/data/text_classification.h"
#include "tools/train/data/token_classification.h"
#include "tools/train/data/tokenized_text.h"

namespace hippodrome {
namespace {

// Tokens by which windows of a context overlap, as in BERT's fine-tuning.
constexpr int64_t kAnswerStride = 128;

using Made = absl::StatusOr<std::unique_ptr<TrainingData>>;

// One of the two data sets of a run.
struct Part {
  const TrainingRun& run;
  const ModelConfig& config;
  const std::vector<std::string>& files;
  BatchOptions batches;
};

absl::Status CheckTokens(const Part& part, const TokenizedText& text, int64_t vocab_size) {
  if (text.vocab_size <= vocab_size) return absl::OkStatus();
  return InvalidArgument(part.files[0] + ": tokens of a vocabulary of " +
                         std::to_string(text.vocab_size) + ", expected at most the " +
                         std::to_string(vocab_size) + " of the model");
}

Made MakeCausal(const Part& part) {
  HIPPODROME_ASSIGN_OR_RETURN(TokenizedText text, ReadTokenFiles(part.files));
  HIPPODROME_RETURN_IF_ERROR(
      CheckTokens(part, text, std::get<H3Config>(part.config).padded_vocab_size));
  return MakeCausalLm(std::move(text.tokens), part.run.length, part.batches);
}

Made MakeSynthetic(const Part& part) {
  const bool induction = part.run.objective == Objective::kInductionHead;
  const SyntheticTask task = {
      .kind = induction ? SyntheticKind::kInductionHead : SyntheticKind::kAssociativeRecall,
      .vocabulary = part.run.data.vocabulary,
      .length = part.run.data.sequence};  // with the published seed, whatever that of the run
  if (std::get<H3Config>(part.config).padded_vocab_size < task.vocabulary) {
    return InvalidArgument("data.vocabulary: " + std::to_string(task.vocabulary) +
                           ", expected at most the model's");
  }
  HIPPODROME_ASSIGN_OR_RETURN(SyntheticExamples examples, MakeSyntheticExamples(task));
  return MakeSyntheticData(
      part.batches.evaluation ? std::move(examples.test) : std::move(examples.train), part.batches);
}

// Of the run, or of the model that it comes from.
absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> Tokenizer(const Part& part) {
  const std::string& directory =
      part.run.tokenizer.empty() ? part.run.model.from : part.run.tokenizer;
  if (directory.empty()) return InvalidArgument("tokenizer: none, expected a directory");
  HIPPODROME_ASSIGN_OR_RETURN(
      auto tokenizer, LoadWordPiece(directory, std::get<BigsConfig>(part.config).vocab_size));
  if (tokenizer == nullptr) return NotFound(directory + ": there is no vocab.txt");
  return tokenizer;
}

Made MakeMasked(const Part& part) {
  HIPPODROME_ASSIGN_OR_RETURN(TokenizedText text, ReadTokenFiles(part.files));
  HIPPODROME_RETURN_IF_ERROR(CheckTokens(part, text, std::get<BigsConfig>(part.config).vocab_size));
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(part));
  return MakeMaskedLm(std::move(text), *tokenizer, {.length = part.run.length}, part.batches);
}

std::string ColumnName(const std::optional<DataColumn>& column) {
  if (!column.has_value()) return "";
  if (const auto* place = std::get_if<int64_t>(&*column)) return std::to_string(*place);
  return std::get<std::string>(*column);
}

Made MakeTexts(const Part& part) {
  const DataFiles& data = part.run.data;
  const TableLayout layout = {.header = data.header,
                              .first = ColumnName(data.text),
                              .second = ColumnName(data.pair),
                              .label = ColumnName(data.label),
                              .skip_broken = data.skip_broken,
                              .unlabelled = data.unlabelled};
  std::deque<std::string> tables;  // into which the texts point
  LabelledTexts texts = {.pairs = !layout.second.empty(), .examples = {}};
  for (const std::string& path : part.files) {
    HIPPODROME_ASSIGN_OR_RETURN(tables.emplace_back(), ReadTextFile(path));
    auto more = ReadLabelledTexts(tables.back(), layout);
    if (!more.ok()) return InvalidArgument(path + ": " + Message(more.status()));
    texts.examples.insert(texts.examples.end(), more->examples.begin(), more->examples.end());
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(part));
  if (part.run.objective == Objective::kRegression) {
    return MakeTextRegression(texts, *tokenizer, part.run.length, part.run.dropout.tokens,
                              part.batches);
  }
  const std::vector<std::string>& labels =
      data.labels.empty() ? std::get<BigsConfig>(part.config).labels : data.labels;
  return MakeTextClassification(texts, labels, *tokenizer, part.run.length, part.run.dropout.tokens,
                                part.batches);
}

absl::StatusOr<std::string> OneFile(const Part& part) {
  if (part.files.size() != 1) return InvalidArgument("data: several files, expected one");
  return ReadTextFile(part.files[0]);
}

Made MakeTags(const Part& part) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, OneFile(part));
  auto sentences = ReadTaggedSentences(text);
  if (!sentences.ok()) {
    return InvalidArgument(part.files[0] + ": " + Message(sentences.status()));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(part));
  return MakeTokenClassification(*sentences, std::get<BigsConfig>(part.config).labels, *tokenizer,
                                 part.run.length, part.batches);
}

Made MakeAnswers(const Part& part) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, OneFile(part));
  auto file = ParseSquad(text);
  if (!file.ok()) return InvalidArgument(part.files[0] + ": " + Message(file.status()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(part));
  const int64_t stride = std::min(kAnswerStride, part.run.length / 3);
  return MakeQuestionAnswering(*file, *tokenizer, part.run.length, stride, part.batches);
}

Made Make(const Part& part) {
  switch (part.run.objective) {
    case Objective::kCausalLm:
      return MakeCausal(part);
    case Objective::kMaskedLm:
      return MakeMasked(part);
    case Objective::kClassification:
    case Objective::kRegression:
      return MakeTexts(part);
    case Objective::kTokenClassification:
      return MakeTags(part);
    case Objective::kQuestionAnswering:
      return MakeAnswers(part);
    case Objective::kInductionHead:
    case Objective::kAssociativeRecall:
      return MakeSynthetic(part);
  }
  return absl::InternalError("unreachable");
}

}  // namespace

absl::StatusOr<RunData> ReadRunData(const TrainingRun& run, const ModelConfig& config) {
  RunData data;
  HIPPODROME_ASSIGN_OR_RETURN(
      data.train, Make({run, config, run.data.train, {.batch_size = run.batch, .seed = run.seed}}));
  if (IsSynthetic(run.objective) || !run.data.valid.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(
        data.valid, Make({run,
                          config,
                          run.data.valid,
                          {.batch_size = run.micro_batch, .seed = run.seed, .evaluation = true}}));
  }
  return data;
}

}  // namespace hippodrome
