#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/tasks/answer_spans.h"
#include "engine/tokenizer/code_points.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/squad_score.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/metrics.h"
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

// A window of a question's context, with its logits once it has run.
struct Window {
  EncodedText text;
  std::vector<float> start;
  std::vector<float> end;
};

struct Question {
  const SquadQuestion* gold = nullptr;
  const std::string* context = nullptr;
  size_t first_window = 0;
  size_t windows = 0;
};

// All questions and their windows, in the order of the file.
struct Work {
  std::vector<Question> questions;
  std::vector<Window> windows;
  int64_t too_long = 0;  // questions that leave no room for a context and stay without an answer
};

void AddQuestion(const EncoderSession& session, const SquadQuestion& gold,
                 const std::string& context, std::span<const WordPiece> pieces, Work& work) {
  const std::vector<WordPiece> question = session.tokenizer().Tokenize(gold.question);
  auto texts = QuestionWindows(session.tokenizer(), question, pieces, session.max_tokens());
  work.too_long += !texts.ok();
  if (!texts.ok()) texts.emplace();
  work.questions.push_back({&gold, &context, work.windows.size(), texts->size()});
  for (EncodedText& text : *texts) work.windows.push_back({.text = std::move(text)});
}

Work PlanWork(const EncoderSession& session, const SquadFile& file) {
  Work work;
  for (const SquadParagraph& paragraph : file.paragraphs) {
    const std::vector<WordPiece> pieces = session.tokenizer().Tokenize(paragraph.context);
    for (const SquadQuestion& question : paragraph.questions) {
      AddQuestion(session, question, paragraph.context, pieces, work);
    }
  }
  return work;
}

absl::Status RunWindows(EncoderSession& session, std::vector<Window>& windows) {
  std::vector<EncoderRequest> requests;
  for (const Window& window : windows) {
    std::vector<int32_t> rows(window.text.ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    requests.push_back(
        {.ids = window.text.ids, .types = window.text.types, .rows = std::move(rows)});
  }
  return session.Run("eval squad", requests, [&](size_t index, const EncoderOutput& output) {
    for (int64_t row = 0; row < output.rows; ++row) {
      windows[index].start.push_back(output.values[row * output.cols]);
      windows[index].end.push_back(output.values[row * output.cols + 1]);
    }
  });
}

SquadPrediction Predict(const Question& question, std::span<const Window> windows,
                        SquadVersion version) {
  std::vector<WindowScores> scores;
  for (const Window& window : windows.subspan(question.first_window, question.windows)) {
    scores.push_back({&window.text, window.start, window.end});
  }
  const auto text = [&](const AnswerSpan& span) {
    return std::string(SliceCodePoints(*question.context, span.begin, span.end));
  };
  if (version == SquadVersion::k1) {
    const std::vector<AnswerSpan> best = BestAnswers(scores, {});
    return {.answer = best.empty() ? "" : text(best[0])};
  }
  // No answer always comes first, so that its logit and that of the best span are both there.
  const std::vector<AnswerSpan> best =
      BestAnswers(scores, {.top_k = 2,
                           .allow_no_answer = true,
                           .no_answer_threshold = -std::numeric_limits<double>::infinity()});
  if (best.size() < 2) return {};
  const double no_answer = best[0].logit - best[1].logit;
  return {.answer = no_answer > 0 ? "" : text(best[1]), .no_answer = no_answer};
}

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
  Work work = PlanWork(*session, *file);
  HIPPODROME_RETURN_IF_ERROR(RunWindows(*session, work.windows));
  const SquadVersion version = file->some_impossible ? SquadVersion::k2 : SquadVersion::k1;
  std::vector<const SquadQuestion*> questions;
  std::vector<SquadPrediction> predictions;
  for (const Question& question : work.questions) {
    questions.push_back(question.gold);
    predictions.push_back(Predict(question, work.windows, version));
  }
  HIPPODROME_RETURN_IF_ERROR(
      WriteByIds(line, "predictions", questions, [&](size_t i) { return predictions[i].answer; }));
  HIPPODROME_RETURN_IF_ERROR(
      WriteByIds(line, "na-probs", questions, [&](size_t i) { return predictions[i].no_answer; }));
  nlohmann::json json = session->Description();
  json.update({{"task", "squad"}, {"windows", work.windows.size()}, {"too_long", work.too_long}});
  json.update(SquadReport(questions, predictions, version));
  return Report(line, json);
}

}  // namespace

int EvalSquad(int argc, char** argv) { return RunCommand(argc, argv, kSquadSpec, EvaluateSquad); }

}  // namespace hippodrome
