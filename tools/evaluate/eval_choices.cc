#include "tools/evaluate/eval_choices.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/passes/forward.h"
#include "engine/tokenizer/gpt2_split.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoder_command.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kChoicesSpec = {
    .name = "eval choices",
    .summary = "Evaluates a decoder on choices between continuations.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "The likeliest continuation of the context is its choice. Each line of the data is "
        "{\"context\": TEXT, \"choices\": [TEXT...], \"gold\": NUMBER}, the number being that of "
        "the right choice, from 0; in place of texts there may be arrays of token ids. Context and "
        "choice are read as one text; white space between them counts with the choice, and an "
        "empty context is the end-of-text token.",
    .options = {ModelOption(),
                DataOption("JSON lines"),
                {"scores", "FILE",
                 "write the log probability of each choice, how many tokens it has, and whether "
                 "they are the likeliest, as JSON lines"},
                WeightsOption(),
                DeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

using QuestionScores = std::vector<ContinuationScore>;

absl::StatusOr<QuestionScores> ScoreQuestion(Backend& backend, const LoadedDecoder& loaded,
                                             const ChoiceQuestion& question) {
  QuestionScores scores;
  for (const Passage& choice : question.choices) {
    const auto place = [&](const absl::Status& status) {
      return absl::Status(status.code(), "line " + std::to_string(question.line) + ": choices[" +
                                             std::to_string(scores.size()) +
                                             "]: " + Message(status));
    };
    const auto joined =
        Join(question.context, choice, loaded.tokenizer.get(), loaded.model->config().eos_token_id);
    if (!joined.ok()) return place(joined.status());
    const auto score = ScoreContinuation(backend, *loaded.model, *joined);
    if (!score.ok()) return place(score.status());
    scores.push_back(*score);
  }
  return scores;
}

// {"best": 1, "log_probabilities": [..], "tokens": [..], "greedy": [..]}
std::string ScoresLine(const QuestionScores& scores) {
  nlohmann::ordered_json line = {{"best", Likeliest(scores)}};
  for (const ContinuationScore& score : scores) {
    line["log_probabilities"].push_back(score.log_probability);
    line["tokens"].push_back(score.tokens);
    line["greedy"].push_back(score.greedy);
  }
  return line.dump() + "\n";
}

struct Outcome {
  int64_t choices = 0;
  int64_t tokens = 0;
  int64_t right = 0;
  std::string lines;
};

absl::StatusOr<Outcome> ScoreQuestions(Backend& backend, const LoadedDecoder& loaded,
                                       std::span<const ChoiceQuestion> questions) {
  Outcome outcome;
  Progress progress("eval choices");
  for (size_t i = 0; i < questions.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(const QuestionScores scores,
                                ScoreQuestion(backend, loaded, questions[i]));
    outcome.choices += std::ssize(scores);
    for (const ContinuationScore& score : scores) outcome.tokens += score.tokens;
    outcome.right += Likeliest(scores) == questions[i].gold;
    outcome.lines += ScoresLine(scores);
    progress.Update(static_cast<int64_t>(i + 1), std::ssize(questions));
  }
  return outcome;
}

absl::Status EvaluateChoices(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const std::string data, ReadDataFile(path));
  const auto questions = ReadChoices(data);
  if (!questions.ok()) return InFile(path, questions.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(device, cpu));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded,
                              LoadDecoderDirectory(*backend, directory, weights));
  const auto outcome = ScoreQuestions(*backend, loaded, *questions);
  if (!outcome.ok()) return InFile(path, outcome.status());
  if (line.Has("scores")) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(line.Text("scores"), outcome->lines));
  }
  const auto examples = std::ssize(*questions);
  return Report(
      line, {{"task", "choices"},
             {"weights", WeightsName(loaded.weights)},
             {"examples", examples},
             {"choices", outcome->choices},
             {"tokens", outcome->tokens},
             {"accuracy", static_cast<double>(outcome->right) / static_cast<double>(examples)}});
}

absl::StatusOr<Continuation> JoinTexts(const std::string& context, const std::string& continuation,
                                       const BpeTokenizer* tokenizer) {
  if (tokenizer == nullptr) return FailedPrecondition("the model has no tokenizer for its text");
  const std::string own = context.substr(0, context.size() - TrailingSpaceLength(context));
  Continuation joined{.ids = tokenizer->Encode(context + continuation)};
  if (!own.empty()) joined.begin = std::ssize(tokenizer->Encode(own));
  return joined;
}

Continuation JoinIds(const std::vector<int32_t>& context,
                     const std::vector<int32_t>& continuation) {
  Continuation joined{.ids = context, .begin = std::ssize(context)};
  joined.ids.insert(joined.ids.end(), continuation.begin(), continuation.end());
  return joined;
}

}  // namespace

absl::StatusOr<Continuation> Join(const Passage& context, const Passage& continuation,
                                  const BpeTokenizer* tokenizer, int64_t end_of_text) {
  Continuation joined;
  if (const auto* text = std::get_if<std::string>(&context)) {
    HIPPODROME_ASSIGN_OR_RETURN(joined,
                                JoinTexts(*text, std::get<std::string>(continuation), tokenizer));
  } else {
    joined = JoinIds(std::get<std::vector<int32_t>>(context),
                     std::get<std::vector<int32_t>>(continuation));
  }
  if (joined.begin >= std::ssize(joined.ids)) {
    return InvalidArgument("it has no token of its own behind the context");
  }
  if (joined.begin > 0) return joined;
  if (end_of_text < 0) {
    return FailedPrecondition("the model has no end-of-text token to stand for an empty context");
  }
  joined.ids.insert(joined.ids.begin(), static_cast<int32_t>(end_of_text));
  joined.begin = 1;
  return joined;
}

absl::StatusOr<ContinuationScore> ScoreContinuation(Backend& backend, const HybridH3& model,
                                                    const Continuation& continuation) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<TokenScores> all,
                              ForwardScores(backend, model, continuation.ids, 1));
  const auto own = std::span(all).subspan(continuation.begin);
  ContinuationScore score{.tokens = std::ssize(own)};
  for (const TokenScores& token : own) {
    score.log_probability += token.log_probability;
    score.greedy &= token.log_probability == token.likeliest.front().log_probability;
  }
  return score;
}

int64_t Likeliest(std::span<const ContinuationScore> scores) {
  return std::max_element(scores.begin(), scores.end(),
                          [](const ContinuationScore& a, const ContinuationScore& b) {
                            return a.log_probability < b.log_probability;
                          }) -
         scores.begin();
}

int EvalChoices(int argc, char** argv) {
  return RunCommand(argc, argv, kChoicesSpec, EvaluateChoices);
}

}  // namespace hippodrome
