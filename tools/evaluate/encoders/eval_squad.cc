#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tasks/answer_spans.h"
#include "engine/tokenizer/code_points.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
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
        "Figures are in percent. Long paragraphs are read in windows of what the model takes, "
        "which "
        "overlap by 128 tokens, or by half of their part of the paragraph where that is less.",
    .options = {DataOption("SQuAD's JSON, of version 1.1 or 2.0")},
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

std::string_view Answer(const Question& question, std::span<const Window> windows,
                        bool allow_no_answer) {
  std::vector<WindowScores> scores;
  for (const Window& window : windows.subspan(question.first_window, question.windows)) {
    scores.push_back({&window.text, window.start, window.end});
  }
  const std::vector<AnswerSpan> best = BestAnswers(scores, {.allow_no_answer = allow_no_answer});
  if (best.empty() || best[0].no_answer) return "";
  return SliceCodePoints(*question.context, best[0].begin, best[0].end);
}

// Means over questions, in percent.
struct Tally {
  int64_t questions = 0;
  AnswerScore sum;

  void Add(const AnswerScore& score) {
    ++questions;
    sum.exact += score.exact;
    sum.f1 += score.f1;
  }
  nlohmann::json Json() const {
    const auto percent = [&](double x) {
      return questions == 0 ? 0 : 100 * x / static_cast<double>(questions);
    };
    return {{"questions", questions}, {"exact_match", percent(sum.exact)}, {"f1", percent(sum.f1)}};
  }
};

absl::Status EvaluateSquad(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  const auto file = ParseSquad(text);
  if (!file.ok()) return InFile(path, file.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kQuestionAnswering}));
  Work work = PlanWork(*session, *file);
  HIPPODROME_RETURN_IF_ERROR(RunWindows(*session, work.windows));
  Tally all;
  Tally answerable;
  Tally impossible;
  for (const Question& question : work.questions) {
    const std::string_view answer = Answer(question, work.windows, file->some_impossible);
    const AnswerScore score = ScoreAnswer(answer, question.gold->answers);
    all.Add(score);
    (question.gold->answers.empty() ? impossible : answerable).Add(score);
  }
  nlohmann::json json = session->Description();
  json.update({{"task", "squad"}, {"windows", work.windows.size()}, {"too_long", work.too_long}});
  json.update(all.Json());
  if (file->some_impossible) {
    json["with_answer"] = answerable.Json();
    json["without_answer"] = impossible.Json();
  }
  return Report(line, json);
}

}  // namespace

int EvalSquad(int argc, char** argv) { return RunCommand(argc, argv, kSquadSpec, EvaluateSquad); }

}  // namespace hippodrome
