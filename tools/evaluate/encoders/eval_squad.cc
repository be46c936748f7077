#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/answer_squad.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/squad_score.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"
#include "tools/evaluate/squad_file.h"

namespace hippodrome {
namespace {

const CommandSpec kSquadSpec = EncoderCommand({
    .name = "eval squad",
    .summary = "Evaluates a model that answers questions about paragraphs.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "Figures are in percent, those of evaluate-v2.0.py where some questions have no answer, "
        "else of evaluate-v1.1.py. Long paragraphs are read in windows of what the model takes, "
        "which overlap by 128 tokens, or by half of their part of the paragraph where that is "
        "less.",
    .options = {DataOption("SQuAD's JSON, of version 1.1 or 2.0"),
                {"predictions", "FILE",
                 "writes the answers as the published scripts read them, {\"id\": \"text\"}"},
                {"na-probs", "FILE",
                 "of SQuAD 2: writes for each question how far the logit of no answer is above "
                 "that of the best span, for evaluate-v2.0.py --na-prob-file"}},
});

// Writes a member for each question by its id, to the file that the option names.
template <typename F>
absl::Status WriteByIds(const CommandLine& line, const std::string& option,
                        std::span<const SquadQuestion* const> questions, const F& value) {
  if (!line.Has(option)) return absl::OkStatus();
  nlohmann::ordered_json members = nlohmann::ordered_json::object();
  for (size_t i = 0; i < questions.size(); ++i) members[questions[i]->id] = value(i);
  return WriteTextFile(line.Text(option), members.dump() + "\n");
}

absl::Status CheckOptions(const CommandLine& line, const std::string& path, const SquadFile& file) {
  if (line.Has("na-probs") && !file.some_impossible) {
    return Usage("--na-probs are of SQuAD 2, but every question of --data has an answer");
  }
  if (!line.Has("na-probs") && !line.Has("predictions")) return absl::OkStatus();
  for (const SquadParagraph& paragraph : file.paragraphs) {
    for (const SquadQuestion& question : paragraph.questions) {
      if (!question.id.empty()) continue;
      return InvalidArgument(path + ": the question '" + OneLine(question.question) +
                             "' has no id, by which answers are written");
    }
  }
  return absl::OkStatus();
}

absl::Status EvaluateSquad(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  const auto file = ParseSquad(text);
  if (!file.ok()) return InFile(path, file.status());
  HIPPODROME_RETURN_IF_ERROR(CheckOptions(line, path, *file));
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kQuestionAnswering}));
  HIPPODROME_ASSIGN_OR_RETURN(const SquadAnswers answers, AnswerSquad(*session, *file));
  const std::vector<SquadPrediction>& predictions = answers.predictions;
  HIPPODROME_RETURN_IF_ERROR(WriteByIds(line, "predictions", answers.questions,
                                        [&](size_t i) { return predictions[i].answer; }));
  HIPPODROME_RETURN_IF_ERROR(WriteByIds(line, "na-probs", answers.questions,
                                        [&](size_t i) { return predictions[i].no_answer; }));
  return Report(line, SquadReport(*session, answers));
}

}  // namespace

int EvalSquad(int argc, char** argv) { return RunCommand(argc, argv, kSquadSpec, EvaluateSquad); }

}  // namespace hippodrome
