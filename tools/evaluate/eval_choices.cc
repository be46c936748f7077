// `hippodrome eval choices`.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/choices_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/lm/decoder_session.h"
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

absl::Status InChoice(const ChoiceQuestion& question, size_t choice, const absl::Status& status) {
  return {status.code(), "line " + std::to_string(question.line) + ": choices[" +
                             std::to_string(choice) + "]: " + Message(status)};
}

// In tokens, which the model can read.
absl::StatusOr<std::vector<Continuation>> JoinChoices(const DecoderSession& session,
                                                      const ChoiceQuestion& question) {
  Joiner joiner = session.NewJoiner();
  std::vector<Continuation> joined;
  for (const Passage& choice : question.choices) {
    auto one = joiner.Join(question.context, choice);
    if (!one.ok()) return InChoice(question, joined.size(), one.status());
    const absl::Status status = session.Check(*one);
    if (!status.ok()) return InChoice(question, joined.size(), status);
    joined.push_back(*std::move(one));
  }
  return joined;
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

absl::StatusOr<Outcome> ScoreQuestions(DecoderSession& session,
                                       std::span<const ChoiceQuestion> questions) {
  constexpr size_t kTogether = 32;
  Outcome outcome;
  Progress progress("eval choices");
  for (size_t begin = 0; begin < questions.size(); begin += kTogether) {
    const auto some = questions.subspan(begin, std::min(kTogether, questions.size() - begin));
    std::vector<std::vector<Continuation>> joined;
    for (const ChoiceQuestion& question : some) {
      HIPPODROME_ASSIGN_OR_RETURN(auto choices, JoinChoices(session, question));
      joined.push_back(std::move(choices));
    }
    HIPPODROME_ASSIGN_OR_RETURN(const auto all, session.Score(joined));
    for (size_t i = 0; i < some.size(); ++i) {
      const QuestionScores& scores = all[i];
      outcome.choices += std::ssize(scores);
      for (const ContinuationScore& score : scores) outcome.tokens += score.tokens;
      outcome.right += Likeliest(scores) == some[i].gold;
      outcome.lines += ScoresLine(scores);
    }
    progress.Update(static_cast<int64_t>(begin + some.size()), std::ssize(questions));
  }
  return outcome;
}

absl::Status EvaluateChoices(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string data, ReadDataFile(path));
  const auto questions = ReadChoices(data);
  if (!questions.ok()) return InFile(path, questions.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session, DecoderSession::Open(line, directory));
  const auto outcome = ScoreQuestions(*session, *questions);
  if (!outcome.ok()) return InFile(path, outcome.status());
  if (line.Has("scores")) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(line.Text("scores"), outcome->lines));
  }
  const auto examples = std::ssize(*questions);
  return Report(
      line, {{"task", "choices"},
             {"weights", WeightsName(session->weights())},
             {"examples", examples},
             {"choices", outcome->choices},
             {"tokens", outcome->tokens},
             {"accuracy", static_cast<double>(outcome->right) / static_cast<double>(examples)}});
}

}  // namespace

int EvalChoices(int argc, char** argv) {
  return RunCommand(argc, argv, kChoicesSpec, EvaluateChoices);
}

}  // namespace hippodrome
